/** Findings of `doctor`, and how its checks note them. */
import { redactSecrets } from "../redact.ts";

/** `warning`: a problem that may be intended. `error`: a problem that users will have. */
export type Level = "ok" | "warning" | "error";

/** The result of one check. */
export interface Finding {
  /** Subject of the check, such as `store` or `upstream openai`. */
  about: string;
  level: Level;
  /** The finding, in one sentence. */
  what: string;
  /** The remedy, in one sentence; absent if there is no problem, or if `what` names it. */
  advice?: string;
}

/** Collects the findings about one subject. */
export interface Notes {
  readonly found: Finding[];
  ok(what: string): void;
  warn(what: string, advice: string): void;
  error(what: string, advice: string): void;
}

/** Creates an empty collection of findings about a subject. */
export function createNotes(about: string): Notes {
  const found: Finding[] = [];
  return {
    found,
    ok: (what) => void found.push({ about, level: "ok", what }),
    warn: (what, advice) => void found.push({ about, level: "warning", what, advice }),
    error: (what, advice) => void found.push({ about, level: "error", what, advice }),
  };
}

/** Returns findings with the secrets of the configuration removed from their texts. */
export function withoutSecrets(findings: readonly Finding[]): Finding[] {
  return findings.map(({ what, advice, ...others }) => ({
    ...others,
    what: redactSecrets(what),
    ...(advice !== undefined && { advice: redactSecrets(advice) }),
  }));
}
