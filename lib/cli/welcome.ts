/** Prints how to connect to a gateway that has started, and creates the first key. */
import { issueKey } from "../access/keys.ts";
import { addSignInLink } from "../access/sign_in_link.ts";
import { mayUse } from "../access/permissions.ts";
import { isExpired, isLanguageModel } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import { type Config, groupOf } from "../config.ts";
import { isOnDeploy } from "../config/deno_deploy.ts";
import type { ConfigFlags } from "../config/load.ts";
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
import { writeOut } from "./output.ts";

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
 * Prints how to connect. If there is no key and the output is a terminal, it creates the first key; a log would keep
 * the key. It must be called after the port is open, because a key is shown only once and must not belong to a failed
 * start.
 */
export async function welcome({ gateway, servers, flags }: WelcomeParts): Promise<void> {
  const { store } = gateway;
  const origins = await withLink(gateway, originsOf(gateway.config, servers));
  const configured = gateway.config.keys.map(({ name }) => name);
  const isFirst = configured.length === 0 && (await store.keys.summary(0)).total === 0;
  if (isFirst && Deno.stdout.isTerminal()) {
    const { key, record } = issueKey({ name: "default", group: "default", now: gateway.now() });
    // `add` returns false if another process was faster. Its key is then listed below.
    if (await store.keys.add(record, { author: "gateway", at: gateway.now() })) {
      const model = gateway.catalog.models.find((model) => isUsable(gateway, model));
      writeOut(firstStartText({ ...origins, key, ...(model !== undefined && { model: model.id }) }));
      return;
    }
  }
  const place = isDeployed() ? {} : {
    folder: Deno.cwd(),
    background: backgroundOf({ isTerminal: Deno.stdout.isTerminal(), env: (name) => Deno.env.get(name) }),
  };
  const program = { isStandalone: Deno.build.standalone, ...place };
  const command = gateway.config.store.kind === "memory" ? MEMORY_KEYS : addCommand(flags, program);
  writeOut(
    laterStartText({ ...origins, keys: await store.keys.summary(MAX_LISTED_KEYS), configured, addCommand: command }),
  );
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
