/** Counts the memory of request bodies and large answers, so that all together stay within a limit. */
import { GatewayError } from "../errors.ts";

/**
 * Memory of a JSON body while it is read and its tokens are counted, as a multiple of its size: its bytes, its text and
 * its values. Measured: bodies of 32 MB took 100 to 130 MB.
 */
export const JSON_MEMORY_FACTOR = 4;

/** Time after which a client may retry if the memory for bodies is used up, in milliseconds. */
const BUDGET_RETRY_MS = 1_000;

/**
 * Share of the budget that the bodies of one API key may take together, so that no key can use up the whole budget. A
 * body may take more while no other is being read, and those that answers keep take at most the rest of the budget.
 */
export const KEY_SHARE = 3 / 4;

/** Counts the bytes of all request bodies in memory. */
export class BodyBudget {
  /** Bytes that are reserved and not yet released. */
  usedBytes = 0;
  /** The part of them whose bodies have been read and are kept for their answers. */
  keptBytes = 0;
  /** The same by API key. Keys without reserved bytes are not in the map. */
  readonly usedByKey = new Map<string, number>();

  /** Creates the reservation of a request. @param keyId API key that the body counts against; absent: none */
  reservationFor(keyId: string | undefined): BodyReservation {
    return new BodyReservation(this, keyId);
  }

  /** Adds bytes, or subtracts them if negative. For `BodyReservation` only. */
  add(bytes: number, keyId: string | undefined): void {
    this.usedBytes += bytes;
    if (keyId === undefined) return;
    const ofKey = (this.usedByKey.get(keyId) ?? 0) + bytes;
    if (ofKey > 0) this.usedByKey.set(keyId, ofKey);
    else this.usedByKey.delete(keyId);
  }
}

/** The bytes that one request's body has reserved in the budget. */
export class BodyReservation {
  readonly #budget: BodyBudget;
  readonly #keyId: string | undefined;
  #bytes = 0;
  #isKept = false;

  /** @param keyId API key that the body counts against; absent for a request without a key */
  constructor(budget: BodyBudget, keyId?: string) {
    this.#budget = budget;
    this.#keyId = keyId;
  }

  /** Bytes that are reserved. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Reserves bytes. @throws {GatewayError} `limited` if the limit, or the share of the key, leaves too few */
  reserve(bytes: number, limitBytes: number): void {
    const { usedBytes, keptBytes } = this.#budget;
    if (usedBytes + bytes > limitBytes) throw noRoom("too many bytes are being handled");
    const ofKey = this.#keyId === undefined ? 0 : (this.#budget.usedByKey.get(this.#keyId) ?? 0) + bytes;
    const isAlone = usedBytes - keptBytes === this.#bytes && keptBytes <= limitBytes * (1 - KEY_SHARE);
    if (ofKey > limitBytes * KEY_SHARE && !isAlone) throw noRoom("too many bytes of this API key are being handled");
    this.#bytes += bytes;
    this.#budget.add(bytes, this.#keyId);
  }

  /** Releases all but some bytes, which an answer keeps. Nothing may be reserved until they are released. */
  keep(bytes: number): void {
    this.release(this.#bytes - bytes);
    this.#isKept = true;
    this.#budget.keptBytes += bytes;
  }

  /**
   * Counts the bytes of an answer that is already in memory, so that it cannot be refused. Together with all else of its
   * key, it counts at most as much as a key may take: the rest is left to other keys.
   * @returns a function that ends this; it is called once
   */
  hold(bytes: number, limitBytes: number): () => void {
    const budget = this.#budget;
    const keyId = this.#keyId;
    const ofKey = keyId === undefined ? 0 : budget.usedByKey.get(keyId) ?? 0;
    const held = Math.max(0, Math.min(bytes, Math.floor(limitBytes * KEY_SHARE) - ofKey));
    budget.add(held, keyId);
    budget.keptBytes += held;
    return () => {
      budget.add(-held, keyId);
      budget.keptBytes -= held;
    };
  }

  /** Releases bytes. @param bytes absent: all that are reserved */
  release(bytes: number = this.#bytes): void {
    this.#bytes -= bytes;
    this.#budget.add(-bytes, this.#keyId);
    if (this.#isKept) this.#budget.keptBytes -= bytes;
    this.#isKept &&= this.#bytes > 0;
  }
}

function noRoom(reason: string): GatewayError {
  return new GatewayError("limited", `Cannot accept another request body now: ${reason}`, {
    retryAfterMs: BUDGET_RETRY_MS,
  });
}
