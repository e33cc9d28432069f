/** Response bodies that report their own progress, which saves a wrapping stream. */

/** Callbacks of a response body. */
export interface BodyObserver {
  /** Called when bytes were passed on. */
  gave(bytes: number): void;
  /** Called when the body has ended, failed or was cancelled. */
  over(): void;
}

const tellers = new WeakMap<ReadableStream<Uint8Array>, (listener: BodyObserver) => void>();

/** Makes a body observable; `listen` is called at most once, before anything is read. */
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
