// What a kind of plot gives back: the picture, and what its legend says.

import type { LegendEntry } from './legend';

export interface Drawing { image: Element; legend: LegendEntry[] }
