/// On paper nothing can be unfolded: circumstances and definitions are open there, and as they were afterwards. The
/// figures behind plots stay folded; the tables hold them.
export function unfoldForPrint(page: HTMLElement): void {
  let opened: HTMLDetailsElement[] = [];
  addEventListener('beforeprint', () => {
    opened = [...page.querySelectorAll<HTMLDetailsElement>('details:not(.figures):not([open])')];
    for (const fold of opened) fold.open = true;
  });
  addEventListener('afterprint', () => {
    for (const fold of opened) fold.open = false;
  });
}
