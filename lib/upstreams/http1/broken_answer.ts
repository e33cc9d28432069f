/** What a peer says that is no proper HTTP/1.1. Its connection is good for nothing more. */
export class BrokenAnswer extends Error {
  override readonly name = "BrokenAnswer";
}
