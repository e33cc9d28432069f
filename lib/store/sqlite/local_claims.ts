/** Keeps claims of requests in memory, for a store from which only one process serves. */
import type { AnswerClaim, AnswerStore } from "../answers.ts";

/** Most claims; the oldest are dropped. */
const MAX_CLAIMS = 20_000;

/**
 * Creates an empty set of claims, with the calls of an `AnswerStore`.
 * @param monotonic monotonic time in milliseconds
 */
export function openLocalClaims(
  monotonic: () => number = () => performance.now(),
): Pick<AnswerStore, "claim" | "isClaimed" | "release"> {
  const claims = new Map<string, { claim: AnswerClaim; until: number }>();

  return {
    claim(claim, forMs, after) {
      const name = nameOf(claim);
      const existing = claims.get(name);
      const isOver = existing !== undefined && existing.until <= monotonic();
      const holder = existing?.claim.holder;
      if (existing !== undefined && holder !== claim.holder && !(isOver && holder === after)) {
        return Promise.resolve({ requestHash: existing.claim.requestHash, holder: existing.claim.holder, isOver });
      }
      claims.set(name, { claim: { ...claim }, until: monotonic() + forMs });
      const [first] = claims.keys();
      if (claims.size > MAX_CLAIMS && first !== undefined) claims.delete(first);
      return Promise.resolve(undefined);
    },
    isClaimed: (scope, key) => Promise.resolve((claims.get(nameOf({ scope, key }))?.until ?? -Infinity) > monotonic()),
    release(claim) {
      const name = nameOf(claim);
      if (claims.get(name)?.claim.holder === claim.holder) claims.delete(name);
      return Promise.resolve();
    },
  };
}

function nameOf({ scope, key }: { scope: string; key: string }): string {
  return JSON.stringify([scope, key]);
}
