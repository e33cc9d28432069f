/**
 * Prompt-cache affinity: requests of one conversation go to the target that has the start of the conversation in its
 * cache. A new conversation gets its target by rendezvous hashing, so that all nodes choose the same one without shared
 * state.
 */
import { createHash } from "node:crypto";
import { type TargetKey, targetName } from "./health.ts";

/** Maximum number of conversations that are remembered for one API key. */
const MAX_PER_KEY = 2_000;
/** Maximum number of conversations that are remembered for all API keys. */
const MAX_CONVERSATIONS = 50_000;

/** Returns the hash of the texts that identify a conversation. */
export function conversationId(texts: readonly string[]): string {
  const hash = createHash("sha256");
  // With the lengths, no two lists of texts have the same hash input.
  for (const text of texts) hash.update(`${text.length}:${text}`);
  return hash.digest("base64url");
}

/** Returns a number from 0 to less than 1 that is always the same for a conversation and a target. */
export function drawOf(id: string, target: TargetKey): number {
  const digest = createHash("sha256").update(`${id} ${targetName(target)}`).digest();
  // 48 bits are exact in a double.
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

/** The target that answered the last request of a conversation. */
interface WarmTarget {
  name: string;
  /** When the entry expires, by the monotonic clock. */
  until: number;
}

/**
 * Remembers, in this process, which target answered each conversation last. The least recently used are removed first.
 */
export class ConversationTargets {
  readonly #monotonic: () => number;
  readonly #byKey = new Map<string, Map<string, WarmTarget>>();
  #size = 0;

  /** @param monotonic a monotonic clock, in milliseconds */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Returns the name of the target that answered the last request of a conversation; undefined if that has expired. */
  find(keyId: string, id: string): string | undefined {
    const target = this.#byKey.get(keyId)?.get(id);
    return target !== undefined && target.until > this.#monotonic() ? target.name : undefined;
  }

  /** Remembers the target that answered a request of a conversation, for `forMs` milliseconds. */
  remember(keyId: string, { id, target, forMs }: { id: string; target: TargetKey; forMs: number }): void {
    const ofKey = this.#byKey.get(keyId) ?? new Map<string, WarmTarget>();
    const previousSize = ofKey.size;
    // The last entry of a map is the most recently used one.
    ofKey.delete(id);
    ofKey.set(id, { name: targetName(target), until: this.#monotonic() + forMs });
    if (ofKey.size > MAX_PER_KEY) ofKey.delete(firstOf(ofKey) ?? "");
    this.#byKey.delete(keyId);
    this.#byKey.set(keyId, ofKey);
    this.#size += ofKey.size - previousSize;
    if (this.#size > MAX_CONVERSATIONS) this.#forgetOldest();
  }

  /** Removes the oldest conversation of the least recently used key. */
  #forgetOldest(): void {
    const keyId = firstOf(this.#byKey);
    const ofKey = keyId === undefined ? undefined : this.#byKey.get(keyId);
    if (keyId === undefined || ofKey === undefined) return;
    ofKey.delete(firstOf(ofKey) ?? "");
    if (ofKey.size === 0) this.#byKey.delete(keyId);
    this.#size--;
  }
}

function firstOf(map: ReadonlyMap<string, unknown>): string | undefined {
  return map.keys().next().value;
}
