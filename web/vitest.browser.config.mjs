import { defineConfig } from 'vitest/config';

// The built page in Debian's chromium: slow, and only where that is.
export default defineConfig({
  test: { environment: 'node', include: ['test/browser/**/*.browser.ts'], testTimeout: 30_000, hookTimeout: 60_000, fileParallelism: false },
});
