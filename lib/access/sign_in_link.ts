/** One-time links that sign an operator in with all rights, for consoles that only this machine reaches. */
import { randomBytes } from "node:crypto";
import type { AdminConfig, Config } from "../config.ts";
import type { ChangeOrigin, OperatorStore } from "../store/operators.ts";
import { hashKey } from "./keys.ts";
import { isLoopbackHost } from "./networks.ts";

/** Path of the page where operators sign in. */
export const SIGN_IN_PATH = "/admin/console/sign-in";

/** Name of the parameter that holds the token. */
export const LINK_PARAMETER = "link";

/** Time for which a link is valid: ten minutes, in milliseconds. */
export const LINK_MS = 600_000;

/** Makes a link, whose token is kept as a hash, and logs that. @param at URL of the console's listener */
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
 * Uses a link up and returns whether it was valid. A lookup by hash takes a time that reveals nothing about valid
 * tokens. @param now Unix time in milliseconds
 */
export async function takeSignInLink(
  operators: Pick<OperatorStore, "takeSignInLink">,
  token: string,
  now: number,
): Promise<boolean> {
  return /^[\w-]{43}$/.test(token) && await operators.takeSignInLink(hashKey(token), now);
}

/** True where links are accepted: the console listens on a loopback address. */
export function acceptsSignInLinks({ listen, admin }: Pick<Config, "listen" | "admin">): boolean {
  return isLoopbackHost((admin?.listen ?? listen).hostname);
}

/**
 * True for a gateway that has a console without an admin key: one without `admin`, on a loopback address, that is started
 * at a terminal. Processes that share a port could not share its sessions.
 */
export function hasLocalConsole({ listen, admin }: Pick<Config, "listen" | "admin">, isAtTerminal: boolean): boolean {
  return isAtTerminal && admin === undefined && !listen.reuse_port && acceptsSignInLinks({ listen });
}

/** The admin side of such a gateway: no key has this hash, so links alone lead into its console. */
export function createLocalAdmin(): AdminConfig {
  return { hash: randomBytes(32).toString("hex") };
}
