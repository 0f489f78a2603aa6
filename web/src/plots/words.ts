// A figure of a plot in words. Along an axis whole numbers stay whole ("workers: 2"); figures have the tables' digits.

import { formatBounds, formatFigure, formatTick, unitAfter } from '../data/format';
import type { Axis, Point } from '../data/report';

export const sayX = (value: number, { unit }: Axis): string => formatTick(value, unit) + unitAfter(unit);
export const sayY = (value: number, { unit }: Axis): string => formatFigure(value, unit);

/// "8,409 to 8,624 images/s", or '' where there is none.
export const sayInterval = ({ y, low, high }: Point, { unit }: Axis): string =>
  (y !== null && low !== null && high !== null && high > low ? formatBounds(low, high, unit, y) : '');
