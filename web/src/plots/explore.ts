// Finding one's way through a drawing: with the mouse, a finger or the arrow keys to the nearest spot, whose tip is
// then shown and whose record lights up elsewhere. Escape, or a touch beside it, ends that.

import { svg } from '../dom';
import type { Drawing, Spot } from './drawing';
import type { Later } from '../later';
import type { Links } from './links';
import type { Sized } from './sized';
import type { Tip } from './tip';

export interface Around { tip: Tip; links: Links; later: Later; sized: Sized }

const NEAR = 44;  // pixels from a spot at which the pointer is still at it

export class Explorer {
  private spots: readonly Spot[] = [];
  private image: SVGSVGElement | null = null;
  private at: Spot | null = null;
  private readonly linked: SVGElement[] = [];
  /// Called before a key moves on; true: the key is done with.
  onKey: (event: KeyboardEvent, at: Spot | null) => boolean = () => false;

  constructor(canvas: HTMLElement, private readonly around: Around) {
    canvas.addEventListener('pointermove', (event) => { if (event.pointerType !== 'touch') this.point(event); });
    canvas.addEventListener('pointerdown', (event) => this.point(event));
    canvas.addEventListener('pointerleave', (event) => { if (event.pointerType !== 'touch') this.leave(); });
    canvas.addEventListener('blur', () => this.leave());
    canvas.addEventListener('keydown', (event) => this.key(event));
    // A page that follows a run makes its drawings anew: one that is gone listens no more.
    const gone = new AbortController();
    const whileHere = (act: (event: Event) => void) => (event: Event) => { canvas.isConnected ? act(event) : gone.abort(); };
    document.addEventListener('pointerdown', whileHere(({ target }) => { if (!canvas.contains(target as Node)) this.leave(); }), { signal: gone.signal });
    document.addEventListener('scroll', whileHere(() => { if (around.tip.owner === this) this.follow(); }), { passive: true, capture: true, signal: gone.signal });
    around.links.add((record) => this.light(record));
  }

  /// Takes a new drawing; a spot that was shown stays so if the new one has it.
  take({ image, spots }: Drawing): void {
    const { at } = this;
    this.image = image;
    this.spots = spots;
    this.linked.length = 0;
    this.at = null;
    if (!at) return;
    const same = spots.find(({ key }) => key === at.key);
    if (same) this.show(same);
    else this.leave(at);
  }

  show(spot: Spot): void {
    this.at = spot;
    this.mark(spot);
    this.follow();
    this.around.links.light(spot.record);
  }

  leave(at = this.at): void {
    if (!at) return;
    this.at = null;
    this.image?.querySelector('.cursor')?.remove();
    if (this.around.tip.owner !== this) return;
    this.around.tip.owner = null;
    this.around.tip.hide();
    this.around.links.light('');
  }

  /// The tip stays at its spot while the page scrolls, and goes with it out of sight.
  private follow(): void {
    if (!this.at || !this.image) return;
    const { left, top, scale } = this.frame();
    const at = { x: left + this.at.x * scale, y: top + this.at.y * scale };
    if (at.y < -NEAR || at.y > window.innerHeight + NEAR) this.around.tip.hide();
    else this.around.tip.show(this.at, at, this);
  }

  private frame(): { left: number; top: number; scale: number } {
    const { left, top, width } = this.image!.getBoundingClientRect();
    return { left, top, scale: width / (this.image!.viewBox.baseVal?.width || width) || 1 };
  }

  private point(event: PointerEvent): void {
    if (!this.image) return;
    const { left, top, scale } = this.frame();
    const spot = nearest(this.spots, (event.clientX - left) / scale, (event.clientY - top) / scale);
    if (!spot) this.leave();
    else if (spot !== this.at) {
      this.show(spot);
      if (event.pointerType === 'touch') this.around.tip.say(spot);
    }
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') {
      this.leave();
      return;
    }
    if (this.onKey(event, this.at)) {
      event.preventDefault();
      return;
    }
    const spot = next(this.spots, this.at, event.key);
    if (!spot) return;
    event.preventDefault();
    this.show(spot);
    this.image?.querySelector('.cursor')?.scrollIntoView({ block: 'nearest', behavior: 'instant' });
    this.follow();
    this.around.tip.say(spot);
  }

  private mark({ x, y, box }: Spot): void {
    this.image?.querySelector('.cursor')?.remove();
    this.image?.append(box
      ? svg('rect', { class: 'cursor', x: box.left - 1.5, y: box.top - 1.5, width: box.right - box.left + 3, height: box.bottom - box.top + 3, rx: 2 })
      : svg('circle', { class: 'cursor', cx: x, cy: y, r: 8 }));
  }

  private light(record: string): void {
    for (const ring of this.linked.splice(0)) ring.remove();
    if (record === '' || !this.image) return;
    for (const spot of this.spots) {
      if (spot.record !== record || spot === this.at) continue;
      const ring = svg('circle', { class: 'linked', cx: spot.x, cy: spot.y, r: 8 });
      this.image.append(ring);
      this.linked.push(ring);
    }
  }
}

function distance({ x, y, box }: Spot, px: number, py: number): number {
  if (!box) return Math.hypot(x - px, y - py);
  return Math.hypot(Math.max(box.left - px, 0, px - box.right), Math.max(box.top - py, 0, py - box.bottom));
}

export function nearest(spots: readonly Spot[], x: number, y: number): Spot | null {
  let best: Spot | null = null;
  let least = NEAR;
  for (const spot of spots) {
    const d = distance(spot, x, y);
    if (d < least || (d === least && d === 0)) {
      least = d;
      best = spot;
    }
  }
  return best;
}

/// Where a key leads from a spot: along its lane, or to the nearest of the lane above or below.
export function next(spots: readonly Spot[], at: Spot | null, key: string): Spot | null {
  const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, Home: 0, End: 0 };
  if (!(key in moves) || spots.length === 0) return null;
  const lanes = [...new Set(spots.map(({ lane }) => lane))].sort((a, b) => a - b);
  const from = at && spots.includes(at) ? at : null;
  if (!from) return spots.find(({ lane }) => lane === lanes[0])!;
  const own = spots.filter(({ lane }) => lane === from.lane);
  const i = own.indexOf(from);
  const along = (j: number) => own[Math.max(0, Math.min(own.length - 1, j))]!;
  if (key === 'Home') return own[0]!;
  if (key === 'End') return own[own.length - 1]!;
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    // Lanes of one spot each (rows of a waterfall): left and right walk through them too.
    if (own.length > 1 || lanes.length === 1) return along(i + moves[key]!);
  }
  const lane = lanes[(lanes.indexOf(from.lane) + moves[key]! + lanes.length) % lanes.length]!;
  return spots.filter((spot) => spot.lane === lane).reduce((a, b) => (Math.abs(b.x - from.x) < Math.abs(a.x - from.x) ? b : a));
}
