/** The body of an HTTP message in chunks, as text, piece by piece as it comes. Everything in it has to be ASCII. */

/** Takes what comes from a socket, and gives what belongs to the body. */
export class ChunkedText {
  /** What came of a line whose end has not. */
  #line = "";
  /** Characters of the chunk that are still to come, with its line end; -1: its size is. */
  #left = -1;
  /** Whether the last chunk has come. */
  ended = false;

  /** @throws {Error} if a chunk has no size */
  push(text: string): string {
    let body = "";
    let at = 0;
    while (at < text.length && !this.ended) {
      if (this.#left > 0) {
        const piece = text.slice(at, at + this.#left);
        // The last two characters are its line end.
        body += piece.slice(0, Math.max(0, this.#left - 2));
        at += piece.length;
        this.#left -= piece.length;
        if (this.#left === 0) this.#left = -1;
        continue;
      }
      const end = text.indexOf("\n", at);
      this.#line += text.slice(at, end < 0 ? undefined : end);
      if (end < 0) break;
      at = end + 1;
      const size = Number.parseInt(this.#line, 16);
      if (!(size >= 0)) throw new Error(`Cannot read a chunk: "${this.#line.slice(0, 80)}" is no size`);
      this.#line = "";
      if (size === 0) this.ended = true;
      this.#left = size + 2;
    }
    return body;
  }
}
