/** Whether a client takes what there is for it: one that does not must not hold on to what others wait for. */
import { Bag, type Bagged } from "../unordered_list.ts";
import { GatewayError } from "../errors.ts";

/** A watch over the reader of one stream. */
export interface ReaderWatch {
  /** The client asks for more. */
  asks(): void;
  /** There is something for it. */
  given(): void;
  /** How long the client has left unread what there was, all times together, in milliseconds; to about 100. */
  readonly heldUpMs: number;
  /** Ends the watch. Safe at any time, more than once. */
  stop(): void;
}

/**
 * Starts with something to read.
 * @param unreadMs how long the client may leave it, in milliseconds; it is noticed within 200 more
 * @param gaveUp called once when that was too long, with what the client is told, should it ever read on
 */
export function watchReader(unreadMs: number, gaveUp: (error: GatewayError) => void): ReaderWatch {
  const watch = new Watch(unreadMs, gaveUp);
  READERS.add(watch);
  return watch;
}

/** Time between two looks at all readers, in milliseconds. */
const LOOK_MS = 100;

/**
 * All readers of this isolate, looked at by one timer that runs while there are any. Time is counted in looks: no clock is
 * asked for each event of a stream, and a process that was held up does not blame its clients for it.
 */
class Readers {
  readonly #watches = new Bag<Watch>();
  #timer: ReturnType<typeof setInterval> | undefined;
  looks = 0;

  add(watch: Watch): void {
    this.#watches.add(watch);
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS);
  }

  delete(watch: Watch): void {
    this.#watches.delete(watch);
    if (this.#watches.items.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    this.looks++;
    const late = this.#watches.items.filter((watch) => watch.isLate(this.looks));
    for (const watch of late) watch.giveUp();
  }
}

const READERS = new Readers();

class Watch implements ReaderWatch, Bagged {
  readonly #unreadMs: number;
  readonly #gaveUp: (error: GatewayError) => void;
  /** The look after which something was there to read; `Infinity`: the client waits for more. */
  #since = READERS.looks;
  /** Looks at which there was something to read, before that. */
  #heldUp = 0;
  at = -1;

  constructor(unreadMs: number, gaveUp: (error: GatewayError) => void) {
    this.#unreadMs = unreadMs;
    this.#gaveUp = gaveUp;
  }

  asks(): void {
    if (this.#since === Infinity) return;
    this.#heldUp += READERS.looks - this.#since;
    this.#since = Infinity;
  }

  get heldUpMs(): number {
    return (this.#heldUp + Math.max(0, READERS.looks - this.#since)) * LOOK_MS;
  }

  given(): void {
    this.#since = READERS.looks;
  }

  /** The first of the looks may have come at once. */
  isLate(look: number): boolean {
    return (look - this.#since - 1) * LOOK_MS >= this.#unreadMs;
  }

  giveUp(): void {
    this.stop();
    const message = `Cannot go on with this answer: it was left unread for more than ${this.#unreadMs / 1000} s`;
    this.#gaveUp(new GatewayError("too_slow", message));
  }

  stop(): void {
    READERS.delete(this);
  }
}
