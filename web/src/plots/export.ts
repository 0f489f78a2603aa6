// A drawing as a file of its own: SVG with the page's colours and letters written into it, or PNG made of that.

import { svg } from '../dom';
import { saveBlob, saveText } from '../page/save';
import { SANS, wrap } from './style';

const painted = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linejoin', 'opacity', 'font-size', 'font-weight', 'paint-order'] as const;
const HEAD = 20;  // height of a line of the title

/// A copy whose colours are no variables any more, on a ground, under its title.
export function standalone(image: SVGSVGElement, title: string): SVGSVGElement {
  const copy = image.cloneNode(true) as SVGSVGElement;
  const of = (root: SVGSVGElement) => [root, ...root.querySelectorAll('*')];
  const originals = of(image);
  of(copy).forEach((element, i) => {
    const style = getComputedStyle(originals[i]!);
    for (const name of painted) {
      const value = style.getPropertyValue(name);
      // A reference within the file (the hatching) stays one.
      if (value && !value.startsWith('url(')) element.setAttribute(name, value);
    }
    element.removeAttribute('style');
    element.removeAttribute('class');
  });
  for (const part of copy.querySelectorAll('style')) part.remove();
  const width = Number(image.getAttribute('width'));
  const height = Number(image.getAttribute('height'));
  const lines = wrap(title, (width - 16) / 1.15);
  const top = lines.length * HEAD + 14;
  const card = getComputedStyle(image.closest('.card') ?? image);
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('font-family', SANS);
  copy.setAttribute('viewBox', `0 ${-top} ${width} ${height + top}`);
  copy.setAttribute('height', String(height + top));
  copy.removeAttribute('aria-hidden');
  copy.prepend(
    svg('title', {}, title),
    svg('rect', { x: 0, y: -top, width, height: height + top, fill: card.backgroundColor || '#fff' }),
    ...lines.map((text, i) => svg('text', { 'x': 8, 'y': -top + HEAD * (i + 1), 'font-size': 14, 'font-weight': 600, 'fill': card.color || '#000' }, text)));
  return copy;
}

const written = (image: SVGSVGElement, title: string) => new XMLSerializer().serializeToString(standalone(image, title));

export const saveSvg = (image: SVGSVGElement, name: string, title: string): void => saveText(name, 'image/svg+xml', written(image, title));

const SHARP = 2;  // pixels of the file for one of the page

export async function savePng(image: SVGSVGElement, name: string, title: string): Promise<void> {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(written(image, title))}`;
  await picture.decode();
  const canvas = document.createElement('canvas');
  canvas.width = picture.width * SHARP;
  canvas.height = picture.height * SHARP;
  const pen = canvas.getContext('2d')!;
  pen.scale(SHARP, SHARP);
  pen.drawImage(picture, 0, 0);
  canvas.toBlob((blob) => { if (blob) saveBlob(name, blob); }, 'image/png');
}
