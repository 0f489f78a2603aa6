// What can wait. The first screen is there before the first paint; what stands below it is made when it comes near the
// window, and otherwise piece by piece while the browser has nothing else to do, so that a search in the page finds it.
// Who needs all of it at once (paper, an address, a search that begins early) says so.

/// So near the window a thing is made before one sees it.
const NEAR = 400;

/// Where nothing is laid out (tests) nothing can be near: there all is made at once.
const isLaidOut = () => typeof ResizeObserver !== 'undefined';

export class Later {
  private readonly waiting = new Map<Element, () => void>();
  private watch: IntersectionObserver | null = null;
  private onDone: (() => void) | null = null;
  private isIdling = false;

  /// `act` is called once, soon: one for a box, of which a later one replaces the one before.
  add(box: Element, act: () => void): void {
    if (!isLaidOut()) return act();
    this.waiting.set(box, act);
    this.watch?.observe(box);
    if (this.onDone) this.idle();
  }
  /// What waits for `box`, if anything does, is done now.
  now(box: Element): void {
    const act = this.waiting.get(box);
    this.drop(box);
    act?.();
  }
  /// It is not needed any more.
  drop(box: Element): void {
    if (this.waiting.delete(box)) this.watch?.unobserve(box);
  }
  /// Nothing of it is needed any more.
  clear(): void {
    for (const box of [...this.waiting.keys()]) this.drop(box);
  }
  /// Everything, now.
  all(): void {
    for (const box of [...this.waiting.keys()]) this.now(box);
  }
  /// From now on, the first screen being there, the rest is made; `done` is called whenever nothing is left.
  begin(done: () => void): void {
    this.onDone = done;
    this.watch = new IntersectionObserver((entries) => { for (const { target, isIntersecting } of entries) if (isIntersecting) this.now(target); }, { rootMargin: `${NEAR}px 0px` });
    for (const box of this.waiting.keys()) this.watch.observe(box);
    this.idle();
  }

  private idle(): void {
    if (this.isIdling) return;
    this.isIdling = true;
    whenIdle(() => {
      this.isIdling = false;
      const [box] = this.waiting.keys();
      if (box) this.now(box);
      if (this.waiting.size > 0) this.idle();
      else this.onDone?.();
    });
  }
}

/// One piece at a time, so that what the reader does comes in between.
const whenIdle = (act: () => void): void => {
  if (typeof requestIdleCallback === 'function') requestIdleCallback(act, { timeout: 200 });
  else setTimeout(act, 20);
};

/// Whoever prints, or searches in the page, gets all of it.
export function followNeeds(later: Later): void {
  addEventListener('beforeprint', () => later.all());
  addEventListener('keydown', ({ key, ctrlKey, metaKey }) => {
    if (key === 'F3' || key === '/' || ((ctrlKey || metaKey) && key.toLowerCase() === 'f')) later.all();
  });
}
