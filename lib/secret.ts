/**
 * Secrets of the configuration and the environment, and the list of their values that `redact.ts` removes from texts.
 */

/** Largest number of remembered values; the oldest are forgotten first. Each reload renews those in use. */
const MAX_VALUES = 1_024;

/** Shortest value that is remembered, in characters. Shorter ones are usually words, such as `none` or `ollama`. */
const MIN_CHARACTERS = 8;

const values = new Set<string>();
const state = { values, version: 0 };

/** All remembered values, and a number that changes whenever they do. */
export const remembered: { readonly values: ReadonlySet<string>; readonly version: number } = state;

/** Returns the value of an environment variable; `undefined` if it is not set. */
export type ReadEnvironment = (name: string) => string | undefined;

/** A secret that cannot be printed by accident: not in logs, not in errors, not in JSON. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
    rememberSecret(value);
  }

  /** Returns the secret itself. Call it only where the value is sent or compared. */
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
 * Adds a value to those that `redact.ts` removes from texts. Of an address only the password is added, both
 * percent-encoded and decoded.
 */
export function rememberSecret(value: string): void {
  if (!value.includes("://")) return remember(value);
  const url = URL.parse(value);
  if (url === null) return;
  const { password } = url;
  const queryPassword = url.searchParams.get("password") ?? "";
  for (const text of [password, decodeQuietly(password), queryPassword]) remember(text);
  // A short password may be a common word, so it is redacted only where it stands in an address.
  if (password !== "") add(`:${password}@`);
  if (queryPassword !== "") add(`password=${queryPassword}`);
}

/** Environment variables with headers that may hold secrets. The runtime's exporter reads them by itself. */
const HEADER_VARIABLES = [
  "OTEL_EXPORTER_OTLP_HEADERS",
  "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
  "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
];
/** Environment variables with addresses that may hold passwords, also read by the runtime. */
const ADDRESS_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/** Remembers the secrets of environment variables that the configuration does not name. */
export function rememberEnvironment(env: ReadEnvironment): void {
  for (const name of ADDRESS_VARIABLES) {
    for (const value of [env(name), env(name.toLowerCase())]) {
      // The runtime also accepts a proxy without a scheme.
      if (value !== undefined) rememberSecret(value.includes("://") ? value : `http://${value}`);
    }
  }
  for (const name of HEADER_VARIABLES) {
    for (const header of (env(name) ?? "").split(",")) {
      const value = decodeQuietly(header.slice(header.indexOf("=") + 1).trim());
      remember(value);
      // The token is also remembered without a scheme such as `Bearer`.
      remember(value.replace(/^\S+\s+/, ""));
    }
  }
  remember(env("PGPASSWORD") ?? "");
}

function remember(value: string): void {
  if (value.length >= MIN_CHARACTERS) add(value);
}

function add(value: string): void {
  // A value that is read again becomes the newest.
  if (!values.delete(value)) state.version++;
  values.add(value);
  if (values.size > MAX_VALUES) values.delete(values.values().next().value ?? "");
}

function decodeQuietly(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
