/**
 * Prompt-cache affinity: requests of one conversation go to the target that has its prefix in its cache. A new
 * conversation gets its target by rendezvous hashing, so that all nodes choose the same one without shared state.
 */
import { createHash } from "node:crypto";
import { type TargetKey, targetName } from "./health.ts";

/** Conversations that are remembered for one API key, and for all. */
const MAX_OF_KEY = 2_000;
const MAX_ENTRIES = 50_000;

/** Hash of the texts that identify a conversation. */
export function conversationId(texts: readonly string[]): string {
  const hash = createHash("sha256");
  // The length keeps texts apart.
  for (const text of texts) hash.update(`${text.length}:${text}`);
  return hash.digest("base64url");
}

/** A number from 0 up to, not including, 1 that is always the same for a conversation and a target. */
export function drawOf(id: string, target: TargetKey): number {
  const digest = createHash("sha256").update(`${id} ${targetName(target)}`).digest();
  // 48 bits are exact in a double.
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

/** The target that answered a conversation last. */
interface WarmTarget {
  name: string;
  /** By the monotonic clock. */
  until: number;
}

/** Remembers which target answered a conversation last, in this process. The least recently used are forgotten first. */
export class ConversationTargets {
  readonly #monotonic: () => number;
  readonly #byKey = new Map<string, Map<string, WarmTarget>>();
  #size = 0;

  /** @param monotonic milliseconds that only grow */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Returns the name of the target that answered a conversation of an API key last, if that is not too long ago. */
  find(keyId: string, id: string): string | undefined {
    const found = this.#byKey.get(keyId)?.get(id);
    return found !== undefined && found.until > this.#monotonic() ? found.name : undefined;
  }

  /** Remembers the target that answered. @param forMs how long, unless the conversation goes on */
  remember(keyId: string, { id, target, forMs }: { id: string; target: TargetKey; forMs: number }): void {
    const ofKey = this.#byKey.get(keyId) ?? new Map<string, WarmTarget>();
    const before = ofKey.size;
    // The last entry of a map is the most recently used one.
    ofKey.delete(id);
    ofKey.set(id, { name: targetName(target), until: this.#monotonic() + forMs });
    if (ofKey.size > MAX_OF_KEY) ofKey.delete(firstOf(ofKey) ?? "");
    this.#byKey.delete(keyId);
    this.#byKey.set(keyId, ofKey);
    this.#size += ofKey.size - before;
    if (this.#size > MAX_ENTRIES) this.#forgetOldest();
  }

  /** Forgets the oldest conversation of the key that was used least recently. */
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
