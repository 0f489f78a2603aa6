// The data of a page as its JSON: the program compresses it (src/report/page.h), a server's or a test's may be plain.

import { AGAIN, SchemaError } from './at';

/// Errors: SchemaError, for data that was cut off or changed, and for a browser that cannot undo it.
export async function inflate(data: string): Promise<string> {
  const text = data.trim();
  if (text === '' || text.startsWith('{')) return text;
  if (typeof DecompressionStream === 'undefined') {
    throw new SchemaError('This browser is too old for this page: it needs one of 2023 or newer (DecompressionStream). The same report as text: paceline report RECORD.. --markdown FILE.');
  }
  try {
    // Not Uint8Array.from: a call for each of half a million letters takes longer than all else here.
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; ++i) bytes[i] = letters.charCodeAt(i);
    return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))).text();
  } catch {
    throw new SchemaError(`The data of this page is spoilt: it cannot be decompressed. ${AGAIN}`);
  }
}
