/** Findings of the doctor. */
import { redactSecrets } from "../redact.ts";

/** `warning`: it may be intended. `error`: users will run into it. */
export type Level = "ok" | "warning" | "error";

/** The result of one check. */
export interface Finding {
  /** Such as `store` or `upstream openai`. */
  about: string;
  level: Level;
  /** The finding, in one sentence. */
  what: string;
  /** The remedy, in one sentence; absent where there is no problem. */
  advice?: string;
}

/** Findings about one thing. */
export interface Notes {
  readonly found: Finding[];
  ok(what: string): void;
  warn(what: string, advice: string): void;
  error(what: string, advice: string): void;
}

/** Takes notes about one thing. */
export function createNotes(about: string): Notes {
  const found: Finding[] = [];
  return {
    found,
    ok: (what) => void found.push({ about, level: "ok", what }),
    warn: (what, advice) => void found.push({ about, level: "warning", what, advice }),
    error: (what, advice) => void found.push({ about, level: "error", what, advice }),
  };
}

/** The message of an error and its cause, in one line. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  const fullMessage = cause instanceof Error && !message.includes(cause.message)
    ? `${message}: ${cause.message}`
    : message;
  return fullMessage.replaceAll(/\s+/g, " ");
}

/** The findings without what the configuration keeps secret. */
export function withoutSecrets(findings: readonly Finding[]): Finding[] {
  return findings.map(({ what, advice, ...rest }) => ({
    ...rest,
    what: redactSecrets(what),
    ...(advice !== undefined && { advice: redactSecrets(advice) }),
  }));
}
