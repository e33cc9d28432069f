/** Decodes a chunked HTTP body incrementally to text. Everything in it must be ASCII. */

/** Takes bytes of a socket, and returns the body's text among them. */
export class ChunkedText {
  /** The beginning of an incomplete line. */
  #line = "";
  /** Remaining characters of the chunk with its line end; -1: the size line is next. */
  #left = -1;
  /** True if the last chunk has arrived. */
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
