/** Addresses of what is kept outside the process: keys and bills, and the counts of limits. */
import { Secret } from "../secret.ts";

/** What the address of a store looks like: `sqlite:PATH`, `memory:` or that of a Postgres database. */
export const STORE_PATTERN = /^(sqlite:.+|memory:|postgres(ql)?:\/\/.+)$/;

/** What the address of the counts of limits looks like: `memory:` or that of a Redis or Valkey server. */
export const LIMITS_STORE_PATTERN = /^(memory:|rediss?:\/\/.+)$/;

/** What the patterns say, in words. */
export const STORE_FORMS = '"sqlite:PATH", "memory:" or "postgres://USER@HOST/DATABASE"';
export const LIMITS_STORE_FORMS = '"memory:" or "redis://HOST"';

/** What is said of an address that has the form and is none. */
export const INVALID_ADDRESS = "Expected an address: this one has no host, or no port that can be";

/** Where keys and bills are kept. The address of a server may hold a password. */
export type StoreAddress = { kind: "memory" } | { kind: "sqlite"; path: string } | { kind: "postgres"; url: Secret };

/** Where limits are counted. */
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

/** Whether two addresses are the same, passwords included. */
export function isSameAddress(one: StoreAddress | LimitsAddress, other: StoreAddress | LimitsAddress): boolean {
  return textOf(one) === textOf(other);
}

/** Whether the text of an address names a password; `undefined` where it is no address at all. */
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
