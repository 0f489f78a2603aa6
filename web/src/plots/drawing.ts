// What a kind of drawing gives back, and what it is given.

import type { Look } from './colours';
import type { Shape } from './marks';

export interface Box { left: number; right: number; top: number; bottom: number }

/// A place that the pointer, a finger or the arrow keys can reach, in pixels of the image, and what is said there.
/// `lane` and `x` are its place among the others: left and right walk along a lane, up and down between lanes.
export interface Spot {
  key: string;     ///< the same where the drawing is made again
  x: number;
  y: number;
  lane: number;
  box?: Box;       ///< of an area: anywhere in it is at the spot
  title: string;
  rows: [name: string, value: string][];
  record: string;  ///< id that joins it to other figures and to rows of the table; '' for none
}

/// An entry of a legend that is no switch: what a sign means.
export interface Key {
  sign: 'box' | 'striped' | 'whisker' | 'band' | 'hatch' | 'hollow' | 'dotted' | 'struck' | 'ring' | 'none';
  text: string;
  colour?: string;
}

export interface Drawing {
  image: SVGSVGElement;
  spots: Spot[];
  keys: Key[];
}

/// How a series is told from others where it stands in a legend.
export interface Named { name: string; look: Look; dashed: boolean; shape?: Shape }
