/** Writes how to connect to a gateway that has started, and creates the first key. */
import { issueKey } from "../access/keys.ts";
import { addSignInLink } from "../access/sign_in_link.ts";
import { mayUse } from "../access/permissions.ts";
import { isExpired, isLanguageModel } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import { type Config, groupOf } from "../config.ts";
import { isOnDeploy } from "../config/deno_deploy.ts";
import type { ConfigFlags } from "../config/load.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import {
  addCommand,
  backgroundOf,
  DEPLOYED_ORIGIN,
  firstStartText,
  laterStartText,
  MAX_LISTED_KEYS,
  MEMORY_KEYS,
  originOf,
  type Origins,
} from "./banner.ts";
import type { Server } from "./listen.ts";

function originsOf(
  { admin }: Pick<Config, "admin">,
  [clientServer, adminServer = clientServer]: readonly [Server, ...Server[]],
): Origins {
  const originAt = ({ addr }: Server): string => isDeployed() ? DEPLOYED_ORIGIN : originOf(addr);
  const origin = originAt(clientServer);
  return admin === undefined ? { origin } : { origin, admin: originAt(adminServer) };
}

/** Adds a sign-in link if the console has no admin key. */
async function withLink({ localAdmin, store, now }: Gateway, origins: Origins): Promise<Origins> {
  if (localAdmin === undefined) return origins;
  const origin = { author: "gateway", at: now() } as const;
  return { ...origins, link: await addSignInLink(store.operators, { at: origins.origin, origin }) };
}

/** Inputs of the start text. */
export interface WelcomeParts {
  gateway: Gateway;
  /** Servers of the listeners, the clients' first. */
  servers: readonly [Server, ...Server[]];
  /** Flags of the command line, for the command that adds a key. */
  flags: ConfigFlags;
}

/**
 * Returns the text of how to connect. If there is no key and the output is a terminal, it creates the first key; a log
 * would keep the key. It must be called after the port is open, because a key is shown only once and must not belong to
 * a failed start. The gateway serves by then, so that a store which does not answer only makes the text shorter.
 */
export async function welcomeText(parts: WelcomeParts): Promise<string> {
  const origins = originsOf(parts.gateway.config, parts.servers);
  try {
    return await textWithKeys(parts, await withLink(parts.gateway, origins));
  } catch (error) {
    if (!(error instanceof GatewayError) || error.refusal === undefined || !("outage" in error.refusal)) throw error;
    return laterStartText({ ...origins, ...configuredOf(parts) });
  }
}

async function textWithKeys(parts: WelcomeParts, origins: Origins): Promise<string> {
  const { gateway } = parts;
  const { store } = gateway;
  const isFirst = gateway.config.keys.length === 0 && (await store.keys.summary(0)).total === 0;
  if (isFirst && Deno.stdout.isTerminal()) {
    const { key, record } = issueKey({ name: "default", group: "default", now: gateway.now() });
    // `add` returns false if another process was faster. Its key is then listed below.
    if (await store.keys.add(record, { author: "gateway", at: gateway.now() })) {
      const model = gateway.catalog.models.find((model) => isUsable(gateway, model));
      return firstStartText({ ...origins, key, ...(model !== undefined && { model: model.id }) });
    }
  }
  return laterStartText({ ...origins, keys: await store.keys.summary(MAX_LISTED_KEYS), ...configuredOf(parts) });
}

/** Returns the parts of the text that are not in the store. */
function configuredOf({ gateway: { config }, flags }: WelcomeParts): { configured: string[]; addCommand: string } {
  const place = isDeployed() ? {} : {
    folder: Deno.cwd(),
    background: backgroundOf({ isTerminal: Deno.stdout.isTerminal(), env: (name) => Deno.env.get(name) }),
  };
  const program = { isStandalone: Deno.build.standalone, ...place };
  return {
    configured: config.keys.map(({ name }) => name),
    addCommand: config.store.kind === "memory" ? MEMORY_KEYS : addCommand(flags, program),
  };
}

function isDeployed(): boolean {
  return isOnDeploy((name) => Deno.env.get(name));
}

/** Returns whether a key of the default group can try out a model. */
function isUsable({ config, now }: Gateway, model: Model): boolean {
  const group = groupOf(config, "default");
  return group !== undefined && isLanguageModel(model) && !isExpired(model, now()) &&
    mayUse({ group, rules: {} }, model.id);
}
