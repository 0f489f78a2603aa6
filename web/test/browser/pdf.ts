// What a PDF of Chromium says of itself without being decoded: its pages, and where the targets of its links stand.

/// The number of pages that a PDF's tree says.
export function pagesOf(pdf: Buffer): number {
  return pdf.toString('latin1').match(/\/Type\s*\/Page(?!s)/g)?.length ?? 0;
}

export interface Place { page: number; y: number }

/// Page (from 0) and height above its foot, in points, of every id that a link of the document names.
export function placesOf(pdf: Buffer): Map<string, Place> {
  const text = pdf.toString('latin1');
  const kids = [...(/\/Kids \[([^\]]*)\]/.exec(text)?.[1] ?? '').matchAll(/(\d+) 0 R/g)].map(([, id]) => id);
  return new Map([...text.matchAll(/\/([\w-]+) \[(\d+) 0 R \/XYZ [\d.]+ (-?[\d.]+) [\d.]+\]/g)].map(([, name, id, y]) => [name!, { page: kids.indexOf(id!), y: Number(y) }]));
}
