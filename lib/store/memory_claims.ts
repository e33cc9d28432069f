/** Who does the work of which request, where one process alone keeps answers. It ends with the process, as the work does. */
import type { AnswerClaim, AnswerStore } from "./answers.ts";

/** Starts with none. @param monotonic milliseconds that only grow */
export function openMemoryClaims(
  monotonic: () => number = () => performance.now(),
): Pick<AnswerStore, "claim" | "isClaimed" | "release"> {
  const claims = new Map<string, { claim: AnswerClaim; until: number }>();

  function current(name: string): AnswerClaim | undefined {
    const found = claims.get(name);
    if (found === undefined || found.until > monotonic()) return found?.claim;
    claims.delete(name);
    return undefined;
  }

  return {
    claim(claim, forMs) {
      const name = nameOf(claim);
      const other = current(name);
      if (other !== undefined && other.holder !== claim.holder) return Promise.resolve(other.requestHash);
      claims.set(name, { claim: { ...claim }, until: monotonic() + forMs });
      return Promise.resolve(undefined);
    },
    isClaimed: (scope, key) => Promise.resolve(current(nameOf({ scope, key })) !== undefined),
    release(claim) {
      const name = nameOf(claim);
      if (current(name)?.holder === claim.holder) claims.delete(name);
      return Promise.resolve();
    },
  };
}

function nameOf({ scope, key }: { scope: string; key: string }): string {
  return JSON.stringify([scope, key]);
}
