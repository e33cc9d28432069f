/** Addresses of the stores: for keys and ledger, and for the counters of limits. */
import { Secret } from "../secret.ts";

/** Pattern of store addresses: `sqlite:PATH`, `memory:` or a Postgres URL. */
export const STORE_PATTERN = /^(sqlite:.+|memory:|postgres(ql)?:\/\/.+)$/;

/** Pattern of limits store addresses: `memory:` or a Redis or Valkey URL. */
export const LIMITS_STORE_PATTERN = /^(memory:|rediss?:\/\/.+)$/;

/** The forms of a store address, for error messages. */
export const STORE_FORMS = '"sqlite:PATH", "memory:" or "postgres://USER@HOST/DATABASE"';
/** The forms of a limits store address, for error messages. */
export const LIMITS_STORE_FORMS = '"memory:" or "redis://HOST"';

/** Error message for an address that matches its pattern but cannot be parsed. */
export const INVALID_ADDRESS = "Expected an address: this one has no host, or an invalid port";

/** Address of the store. A server's URL may contain a password. */
export type StoreAddress = { kind: "memory" } | { kind: "sqlite"; path: string } | { kind: "postgres"; url: Secret };

/** Address of the limits store. */
export type LimitsAddress = { kind: "memory" } | { kind: "redis"; url: Secret };

/** Parses an address that matches `STORE_PATTERN`. */
export function parseStoreAddress(text: string): StoreAddress {
  if (text === "memory:") return { kind: "memory" };
  const path = /^sqlite:(.+)$/.exec(text)?.[1];
  return path === undefined ? { kind: "postgres", url: new Secret(text) } : { kind: "sqlite", path };
}

/** Parses an address that matches `LIMITS_STORE_PATTERN`. */
export function parseLimitsAddress(text: string): LimitsAddress {
  return text === "memory:" ? { kind: "memory" } : { kind: "redis", url: new Secret(text) };
}

/** Returns an address without its password, for display. */
export function addressWithoutPassword(address: StoreAddress | LimitsAddress): string {
  switch (address.kind) {
    case "memory":
      return "memory:";
    case "sqlite":
      return `sqlite:${address.path}`;
    case "postgres":
    case "redis":
      return withoutPassword(address.url);
  }
}

/** Returns whether an address contains a password; `undefined` if it cannot be parsed. */
export function containsPassword(text: string): boolean | undefined {
  if (!text.includes("://")) return false;
  const url = URL.parse(text);
  return url === null ? undefined : url.password !== "" || url.searchParams.has("password");
}

function withoutPassword(secret: Secret): string {
  const url = URL.parse(secret.reveal());
  if (url === null) return "[secret]";
  url.password = "";
  url.searchParams.delete("password");
  return url.href;
}
