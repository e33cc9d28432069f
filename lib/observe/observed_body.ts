/** Response bodies that report their own progress, so that no second stream has to wrap them. */

/** Callbacks for a body on its way to the client. */
export interface BodyObserver {
  /** So many bytes were handed on. */
  gave(bytes: number): void;
  /** It has ended, was cancelled or has failed. */
  over(): void;
}

const tellers = new WeakMap<ReadableStream<Uint8Array>, (listener: BodyObserver) => void>();

/** Makes known that a body is observable; `listen` is called once at most, before anything is read. */
export function setBodyObservable(body: ReadableStream<Uint8Array>, listen: (listener: BodyObserver) => void): void {
  tellers.set(body, listen);
}

/** Observes a body. Returns false if it is not observable. */
export function observeBody(body: ReadableStream<Uint8Array>, listener: BodyObserver): boolean {
  const listen = tellers.get(body);
  if (listen === undefined) return false;
  tellers.delete(body);
  listen(listener);
  return true;
}
