/** What is thrown in one isolate, for another: it must be there what it was here. */
import { ListenError } from "../cli/listen.ts";
import { ConfigError } from "../config.ts";
import { type ErrorKind, type ErrorOptions, GatewayError } from "../errors.ts";
import { StoreError } from "../store/store.ts";

/** Causes of causes that are told. */
const MOST_CAUSES = 4;

/** What was thrown, as plain values. */
export type Thrown =
  | { type: "gateway"; kind: ErrorKind; message: string; options: Omit<ErrorOptions, "cause">; cause?: Thrown }
  | { type: "config"; problems: string[] }
  | { type: "dom"; name: string; message: string }
  | { type: "error"; name: string; message: string; stack?: string; cause?: Thrown }
  /** No error at all. */
  | { type: "other"; text: string };

/** Errors that are told apart by their class, by name. */
const CLASSES: Readonly<Record<string, new (message: string, options?: ErrorOptions) => Error>> = {
  ListenError,
  RangeError,
  StoreError,
  SyntaxError,
  TypeError,
};

/** Packs what was thrown. */
export function packThrown(thrown: unknown, depth = 0): Thrown {
  if (thrown instanceof GatewayError) {
    const { kind, message, param, code, headers, retryAfterMs, final, fault } = thrown;
    const options = {
      headers,
      final,
      ...(param !== undefined && { param }),
      ...(code !== undefined && { code }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(fault !== undefined && { fault }),
    };
    return { type: "gateway", kind, message, options, ...causeOf(thrown, depth) };
  }
  if (thrown instanceof ConfigError) return { type: "config", problems: thrown.problems };
  if (thrown instanceof DOMException) return { type: "dom", name: thrown.name, message: thrown.message };
  if (thrown instanceof Error) {
    const { name, message, stack } = thrown;
    return { type: "error", name, message, ...(stack !== undefined && { stack }), ...causeOf(thrown, depth) };
  }
  return { type: "other", text: String(thrown) };
}

/** What was thrown, again: an error of the same class where it is one that is caught by its class. */
export function unpackThrown(thrown: Thrown): unknown {
  switch (thrown.type) {
    case "gateway":
      return new GatewayError(thrown.kind, thrown.message, { ...thrown.options, ...causeIn(thrown) });
    case "config":
      return new ConfigError(thrown.problems);
    case "dom":
      return new DOMException(thrown.message, thrown.name);
    case "error": {
      const { name, message, stack } = thrown;
      const Class = Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined;
      const error = new (Class ?? Error)(message, causeIn(thrown));
      if (error.name !== name) error.name = name;
      if (stack !== undefined) error.stack = stack;
      return error;
    }
    case "other":
      return thrown.text;
  }
}

function causeOf({ cause }: Error, depth: number): { cause?: Thrown } {
  return cause === undefined || depth >= MOST_CAUSES ? {} : { cause: packThrown(cause, depth + 1) };
}

function causeIn({ cause }: { cause?: Thrown }): { cause?: unknown } {
  return cause === undefined ? {} : { cause: unpackThrown(cause) };
}
