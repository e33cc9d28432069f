/** Secrets of the configuration and the environment, and the list of their values that `redact.ts` looks for. */

/** Most values that are remembered; the oldest go first. A rotated key stays redacted until then. */
const MAX_VALUES = 1_024;

/** Shortest value that is remembered, in characters: shorter ones are words, such as `none` or `ollama`. */
const MIN_CHARACTERS = 8;

const values = new Set<string>();
const state = { values, version: 0 };

/** All values that are remembered, and a number that changes with them. */
export const remembered: { readonly values: ReadonlySet<string>; readonly version: number } = state;

/** Reads a variable of the environment. */
export type ReadEnvironment = (name: string) => string | undefined;

/** A secret that cannot be printed by accident: not in logs, not in errors, not in JSON. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
    rememberSecret(value);
  }

  /** The secret itself, for the one place that needs it. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "[secret]";
  }

  toJSON(): string {
    return "[secret]";
  }

  [Symbol.for("Deno.customInspect")](): string {
    return "[secret]";
  }
}

/**
 * Has a value removed from everything that leaves the process. Of an address only the password is removed, encoded and
 * decoded.
 */
export function rememberSecret(value: string): void {
  if (!value.includes("://")) return remember(value);
  const url = URL.parse(value);
  if (url === null) return;
  const { password } = url;
  const queried = url.searchParams.get("password") ?? "";
  for (const text of [password, decodeQuietly(password), queried]) remember(text);
  // A short one is a word elsewhere, and a password within an address.
  if (password !== "") add(`:${password}@`);
  if (queried !== "") add(`password=${queried}`);
}

/** Variables of the environment that hold secrets which the runtime and the drivers read by themselves. */
const HEADERS = [
  "OTEL_EXPORTER_OTLP_HEADERS",
  "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
  "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
];
const ADDRESSES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/** Remembers the secrets that the environment holds beside those that the configuration names. */
export function rememberEnvironment(env: ReadEnvironment): void {
  for (const name of ADDRESSES) {
    for (const value of [env(name), env(name.toLowerCase())]) {
      // The runtime takes a proxy without its scheme, too.
      if (value !== undefined) rememberSecret(value.includes("://") ? value : `http://${value}`);
    }
  }
  for (const name of HEADERS) {
    for (const header of (env(name) ?? "").split(",")) {
      const value = decodeQuietly(header.slice(header.indexOf("=") + 1).trim());
      remember(value);
      // A scheme such as `Bearer` is no secret.
      remember(value.replace(/^\S+\s+/, ""));
    }
  }
  remember(env("PGPASSWORD") ?? "");
}

function remember(value: string): void {
  if (value.length >= MIN_CHARACTERS) add(value);
}

function add(value: string): void {
  if (values.has(value)) return;
  values.add(value);
  state.version++;
  if (values.size > MAX_VALUES) values.delete(values.values().next().value ?? "");
}

function decodeQuietly(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
