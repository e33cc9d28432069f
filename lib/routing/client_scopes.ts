/**
 * Scopes of single client keys at one target, for keys whose requests failed there or met a limit: what a request asks for
 * can be the reason, so it counts against its own key first.
 */
import { BreakerScope, compareSeverity, type ScopeState } from "./breaker_scope.ts";

/** Most client keys whose failures at a target are kept apart. */
const MOST_KEYS = 32;

/** The scopes of client keys at one target. */
export class ClientScopes {
  readonly #scopes = new Map<string, BreakerScope>();
  #windowMs: number;

  /** @param windowMs time that outcomes count for, in milliseconds */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** The scope of a key, if it has one. */
  find(key: string): BreakerScope | undefined {
    return this.#scopes.get(key);
  }

  /** The scope of a key, made where it has none. Where there are too many, an idle one goes, or else the oldest. */
  findOrAdd(key: string, now: number): BreakerScope {
    const found = this.#scopes.get(key);
    if (found !== undefined) return found;
    if (this.#scopes.size >= MOST_KEYS) {
      const isIdle = ({ breaker, coolUntil }: BreakerScope) => !breaker.isOpen && coolUntil <= now;
      const [first] = [...this.#scopes].find(([, scope]) => isIdle(scope)) ?? [...this.#scopes][0] ?? [];
      if (first !== undefined) this.#scopes.delete(first);
    }
    const added = new BreakerScope(key, this.#windowMs);
    this.#scopes.set(key, added);
    return added;
  }

  /** The outcomes of the key with the most failures. */
  readWorst(now: number): { samples: number; failures: number } {
    const [worst = { samples: 0, failures: 0 }] = [...this.#scopes.values()].map((scope) => scope.read(now))
      .sort((a, b) => b.failures - a.failures || a.samples - b.samples);
    return worst;
  }

  /** End of the longest pause that the target has asked of another key than this one; 0 where there is none. */
  othersCoolUntil(key: string, now: number): number {
    let until = 0;
    for (const { key: other, coolUntil } of this.#scopes.values()) {
      if (other !== key && coolUntil > now) until = Math.max(until, coolUntil);
    }
    return until;
  }

  /** The worst state, and the number of keys that it is for; `undefined` where all are closed. */
  worstState(now: number): ScopeState & { keys: number } | undefined {
    const [worst, ...others] = [...this.#scopes.values()].map((scope) => scope.state(now))
      .filter(({ state }) => state !== "closed")
      .sort(compareSeverity);
    if (worst === undefined) return undefined;
    return { ...worst, keys: 1 + others.filter(({ state }) => state === worst.state).length };
  }

  /** Returns true if the breaker of a key is open and no request tries the target for the key. */
  get awaitsTrial(): boolean {
    return [...this.#scopes.values()].some(({ breaker }) => breaker.awaitsTrial);
  }

  /** Begins to count anew, over another time. */
  restart(windowMs: number): void {
    this.#windowMs = windowMs;
    for (const scope of this.#scopes.values()) scope.restart(windowMs);
  }
}
