/** What a peer says that is no proper HTTP/1.1. Its connection is good for nothing more. */
export class BrokenAnswer extends Error {
  override readonly name = "BrokenAnswer";
}

/** A peer that wants to be spoken to in another version of HTTP: it has certainly begun nothing. */
export class OtherVersion extends Error {
  override readonly name = "OtherVersion";
}
