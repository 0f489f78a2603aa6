// The DOM of the tests lays nothing out, so its ResizeObserver never reports a width: plots then draw at once.

import { vi } from 'vitest';

vi.stubGlobal('ResizeObserver', undefined);
