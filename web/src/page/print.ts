/// On paper nothing can be unfolded: warnings, circumstances and definitions are open there, and as they were
/// afterwards. Folded sections and the figures behind plots stay shut: who wants them opens them first. Drawings are
/// made for the width of the paper.
export function prepareForPrint(page: HTMLElement): void {
  let opened: HTMLDetailsElement[] = [];
  const measure = () => page.querySelectorAll('.canvas').forEach((canvas) => canvas.dispatchEvent(new Event('measure')));
  addEventListener('beforeprint', () => {
    opened = [...page.querySelectorAll<HTMLDetailsElement>('details:not(.figures):not(.fold):not([open])')];
    for (const details of opened) details.open = true;
    page.classList.add('paper');
    measure();
  });
  addEventListener('afterprint', () => {
    for (const details of opened) details.open = false;
    page.classList.remove('paper');
    measure();
  });
}
