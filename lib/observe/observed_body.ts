/** Bodies that tell by themselves what passes, so that nobody has to put another stream around them. */

/** Told of a body on its way to the client. */
export interface BodyObserver {
  /** So many bytes were handed on. */
  gave(bytes: number): void;
  /** It is over, whoever ended it. */
  over(): void;
}

const tellers = new WeakMap<ReadableStream<Uint8Array>, (listener: BodyObserver) => void>();

/** Makes known that a body is observable; `listen` is called once at most, before anything is read. */
export function setBodyObservable(body: ReadableStream<Uint8Array>, listen: (listener: BodyObserver) => void): void {
  tellers.set(body, listen);
}

/** Listens to a body. Returns false where it does not tell. */
export function observeBody(body: ReadableStream<Uint8Array>, listener: BodyObserver): boolean {
  const listen = tellers.get(body);
  if (listen === undefined) return false;
  tellers.delete(body);
  listen(listener);
  return true;
}
