/** True for the first half of a character that takes two of the code units JavaScript's texts are made of. */
export function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
