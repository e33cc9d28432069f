/** Addresses of the stores: for keys and ledger, and for the counters of limits. */
import { Secret } from "../secret.ts";

/** Pattern of a store's address: `sqlite:PATH`, `memory:` or that of a Postgres database. */
export const STORE_PATTERN = /^(sqlite:.+|memory:|postgres(ql)?:\/\/.+)$/;

/** Pattern of the address of a limits store: `memory:` or that of a Redis or Valkey server. */
export const LIMITS_STORE_PATTERN = /^(memory:|rediss?:\/\/.+)$/;

/** The patterns in words. */
export const STORE_FORMS = '"sqlite:PATH", "memory:" or "postgres://USER@HOST/DATABASE"';
export const LIMITS_STORE_FORMS = '"memory:" or "redis://HOST"';

/** Problem of an address that matches the pattern but cannot be parsed. */
export const INVALID_ADDRESS = "Expected an address: this one has no host, or an invalid port";

/** Address of the store of keys and ledger. That of a server may hold a password. */
export type StoreAddress = { kind: "memory" } | { kind: "sqlite"; path: string } | { kind: "postgres"; url: Secret };

/** Address of the counters of limits. */
export type LimitsAddress = { kind: "memory" } | { kind: "redis"; url: Secret };

/** Reads an address that has the form of `STORE_PATTERN`. */
export function parseStoreAddress(text: string): StoreAddress {
  if (text === "memory:") return { kind: "memory" };
  const path = /^sqlite:(.+)$/.exec(text)?.[1];
  return path === undefined ? { kind: "postgres", url: new Secret(text) } : { kind: "sqlite", path };
}

/** Reads an address that has the form of `LIMITS_STORE_PATTERN`. */
export function parseLimitsAddress(text: string): LimitsAddress {
  return text === "memory:" ? { kind: "memory" } : { kind: "redis", url: new Secret(text) };
}

/** An address as it may be shown: without a password. */
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

/** True if two addresses are the same, passwords included. */
export function isSameAddress(one: StoreAddress | LimitsAddress, other: StoreAddress | LimitsAddress): boolean {
  return textOf(one) === textOf(other);
}

/** True if an address contains a password; `undefined` if it cannot be parsed. */
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

function textOf(address: StoreAddress | LimitsAddress): string {
  return "url" in address ? address.url.reveal() : addressWithoutPassword(address);
}
