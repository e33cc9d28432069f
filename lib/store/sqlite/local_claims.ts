/** Claims of requests in memory, for a store that one process serves from. */
import type { AnswerClaim, AnswerStore } from "../answers.ts";

/** Most claims; the oldest are dropped. */
const MAX_CLAIMS = 20_000;

/** Creates an empty set of claims. @param monotonic monotonic time in milliseconds */
export function openLocalClaims(
  monotonic: () => number = () => performance.now(),
): Pick<AnswerStore, "claim" | "isClaimed" | "release"> {
  const claims = new Map<string, { claim: AnswerClaim; until: number }>();

  return {
    claim(claim, forMs, after) {
      const name = nameOf(claim);
      const found = claims.get(name);
      const isOver = found !== undefined && found.until <= monotonic();
      const holder = found?.claim.holder;
      if (found !== undefined && holder !== claim.holder && !(isOver && holder === after)) {
        return Promise.resolve({ requestHash: found.claim.requestHash, holder: found.claim.holder, isOver });
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
