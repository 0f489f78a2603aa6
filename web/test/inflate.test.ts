import { compress } from '../build/one-file.mjs';
import { describe, expect, it } from 'vitest';
import { sample } from '../build/sample-data.mjs';
import { inflate } from '../src/data/inflate';

const compressed = (text: string) => compress(text);

describe('The data of a page', () => {
  it.each(['{}', sample('study'), sample('golden'), JSON.stringify({ title: 'µs, ±5 %, 日本' })])('is restored, letters of all alphabets too', async (json) => {
    expect(await inflate(`\n${compressed(json)}\n`)).toBe(json);
  });
  it('may be plain', async () => {
    expect(await inflate(' {"schema": "x"} ')).toBe('{"schema": "x"}');
    expect(await inflate(' ')).toBe('');
  });
  it('that was cut off or changed is refused, with the next step', async () => {
    const letters = compressed(sample('study'));
    for (const spoilt of [letters.slice(0, 400), `${letters.slice(0, 100)}A${letters.slice(101)}`, 'not base64!']) {
      await expect(inflate(spoilt)).rejects.toThrow(/is spoilt.*paceline report/);
    }
  });
});
