/** Characters that take two of the code units JavaScript's texts are made of. */

/** True for the first half of such a character. */
export function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** Where a piece of a text ends that may go up to `end`: its last character stays whole. The text's own end is one. */
export function wholeEnd(text: string, end: number): number {
  if (end >= text.length) return text.length;
  return isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
}
