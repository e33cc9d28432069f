/** One-time links that sign an operator in with all rights, for consoles that listen on a loopback address. */
import { randomBytes } from "node:crypto";
import type { AdminConfig, Config } from "../config.ts";
import type { ChangeOrigin, OperatorStore } from "../store/operators.ts";
import { hashKey } from "./keys.ts";
import { isLoopbackHost } from "./networks.ts";

/** Path of the page where operators sign in. */
export const SIGN_IN_PATH = "/admin/console/sign-in";

/** Name of the parameter that holds the token. */
export const LINK_PARAMETER = "link";

/** Lifetime of a link: ten minutes, in milliseconds. */
export const LINK_MS = 600_000;

/**
 * Creates a link and writes that to the log of changes. The store has only the hash of its token.
 * @param at URL of the console's listener
 */
export async function addSignInLink(
  operators: Pick<OperatorStore, "addSignInLink" | "logChange">,
  { at, origin }: { at: string; origin: ChangeOrigin },
): Promise<string> {
  const token = randomBytes(32).toString("base64url");
  await operators.addSignInLink({ id: hashKey(token), expiresAt: origin.at + LINK_MS }, origin.at);
  await operators.logChange({ ...origin, action: "create_sign_in_link" });
  return `${at}${SIGN_IN_PATH}?${LINK_PARAMETER}=${token}`;
}

/**
 * Invalidates a link and returns whether it was valid. Tokens are looked up by their hashes, so the time that this
 * takes reveals nothing about valid tokens.
 * @param now Unix time in milliseconds
 */
export async function takeSignInLink(
  operators: Pick<OperatorStore, "takeSignInLink">,
  token: string,
  now: number,
): Promise<boolean> {
  return /^[\w-]{43}$/.test(token) && await operators.takeSignInLink(hashKey(token), now);
}

/** Returns whether sign-in links are accepted, which requires that the console listens on a loopback address. */
export function acceptsSignInLinks({ listen, admin }: Pick<Config, "listen" | "admin">): boolean {
  return isLoopbackHost((admin?.listen ?? listen).hostname);
}

/**
 * Returns whether a gateway has a console although no admin key is configured: it has no `admin`, listens on a loopback
 * address, and was started at a terminal. Processes that share a port are excluded: they could not share its sessions.
 */
export function hasLocalConsole({ listen, admin }: Pick<Config, "listen" | "admin">, isAtTerminal: boolean): boolean {
  return isAtTerminal && admin === undefined && !listen.reuse_port && acceptsSignInLinks({ listen });
}

/** Creates the admin settings of such a gateway. No key has this random hash, so only links open its console. */
export function createLocalAdmin(): AdminConfig {
  return { hash: randomBytes(32).toString("hex") };
}
