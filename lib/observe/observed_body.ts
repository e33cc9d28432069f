/** Bodies that tell by themselves what passes, so that nobody has to put another stream around them. */

/** Told of a body on its way to the client. */
export interface BodyListener {
  /** So many bytes were handed on. */
  gave(bytes: number): void;
  /** It is over, whoever ended it. */
  over(): void;
}

const tellers = new WeakMap<ReadableStream<Uint8Array>, (listener: BodyListener) => void>();

/** Makes known that a body tells; `listen` is called once at most, before anything is read. */
export function tells(body: ReadableStream<Uint8Array>, listen: (listener: BodyListener) => void): void {
  tellers.set(body, listen);
}

/** Listens to a body. Returns false where it does not tell. */
export function listenTo(body: ReadableStream<Uint8Array>, listener: BodyListener): boolean {
  const listen = tellers.get(body);
  if (listen === undefined) return false;
  tellers.delete(body);
  listen(listener);
  return true;
}
