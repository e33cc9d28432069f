/**
 * Requests with an `Idempotency-Key`, brought together from all isolates: two of one key must not both be done. The owner
 * decides who does the work, and keeps the answers; the work itself is done where the request came in.
 */
import type { StoredAnswer } from "../images/answer_shelf.ts";
import type { Idempotency, RepeatableRequest } from "../images/idempotency.ts";
import type { RepeatDesk, RepeatWork } from "./contract.ts";
import type { Told } from "./wire.ts";

/** The requests of a worker. */
export interface Repeats {
  /** For its gateway. */
  idempotency: Idempotency;
  /** For the owner. */
  work: RepeatWork;
}

/** Begins with no requests. */
export function createRepeats(desk: RepeatDesk, told: Told<RepeatDesk>): Repeats {
  const requests = new Map<number, RepeatableRequest>();
  const working = new Map<number, AbortController>();
  let count = 0;
  return {
    idempotency: {
      async run(request) {
        const { signal, work: _, ...rest } = request;
        signal.throwIfAborted();
        const id = count++;
        requests.set(id, request);
        const leave = () => told.leave(id);
        signal.addEventListener("abort", leave, { once: true });
        try {
          return await desk.run({ ...rest, id });
        } catch (error) {
          signal.throwIfAborted();
          throw error;
        } finally {
          signal.removeEventListener("abort", leave);
          requests.delete(id);
        }
      },
      // The owner has the answers.
      sweep: () => Promise.resolve(),
      close() {
        for (const controller of working.values()) controller.abort(new DOMException("Closed", "AbortError"));
      },
    },
    work: {
      async work(id) {
        const request = requests.get(id);
        if (request === undefined) throw new DOMException("The client has gone", "AbortError");
        const controller = new AbortController();
        working.set(id, controller);
        try {
          return sendable(await request.work(controller.signal));
        } finally {
          working.delete(id);
        }
      },
      stop: (id) => working.get(id)?.abort(new DOMException("Nobody waits any more", "AbortError")),
    },
  };
}

/** A piece of a larger buffer would be sent with all of it. */
function sendable(answer: StoredAnswer): StoredAnswer {
  const { body } = answer;
  return body.byteLength === body.buffer.byteLength ? answer : { ...answer, body: body.slice() };
}

/** What the owner does for the requests of one worker. */
export interface Desk extends RepeatDesk {
  /** The worker has gone, and so have its clients. */
  close(): void;
}

/** Opens a desk for a worker. */
export function openDesk(
  idempotency: Pick<Idempotency, "run">,
  { work, told }: { work: RepeatWork; told: Told<RepeatWork> },
): Desk {
  const clients = new Map<number, AbortController>();
  const gone = () => new DOMException("The client has gone", "AbortError");
  return {
    async run({ id, ...request }) {
      const controller = new AbortController();
      clients.set(id, controller);
      try {
        return await idempotency.run({
          ...request,
          signal: controller.signal,
          work(stop) {
            stop.addEventListener("abort", () => told.stop(id), { once: true });
            return work.work(id);
          },
        });
      } finally {
        clients.delete(id);
      }
    },
    leave: (id) => clients.get(id)?.abort(gone()),
    close() {
      for (const controller of clients.values()) controller.abort(gone());
    },
  };
}
