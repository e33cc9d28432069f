/** One upstream: whether it can be reached, takes the key, and knows the models. Nothing here costs anything. */
import { isObject, type JsonObject } from "../json/mod.ts";
import { type AddressGuard, allowedAddresses, BlockedAddress } from "../upstreams/address_guard.ts";
import { proxyFor } from "../upstreams/proxies.ts";
import {
  askHost,
  emptyRequest,
  mayRefuseKey,
  modelList,
  type ProbedHost,
  type ProbeReply,
  type ProbeRequest,
} from "../upstreams/probe.ts";
import { vendorOf } from "../upstreams/vendors.ts";
import { transportKindFor } from "../upstreams/select_transport.ts";
import { baseUrlOf, type Host } from "./host.ts";
import { createNotes, type Finding, type Notes, reasonOf } from "./finding.ts";
import { checkConnection, type ConnectionCheckOptions, noteTlsFailure } from "./connection.ts";

/** Largest list of models that is read, in UTF-16 code units. */
const LIST_LENGTH = 8 * 1024 * 1024;
/** An answer that takes longer than this is told, in milliseconds. */
const SLOW_MS = 3_000;
/** Models that are told by name. */
const NAMED = 5;

/** What one upstream is looked at with. */
export interface UpstreamCheckOptions extends ConnectionCheckOptions {
  env: (name: string) => string | undefined;
  /** Judges what its host resolves to; absent: metadata addresses are refused. */
  guard?: AddressGuard;
}

/** What was found at one upstream. */
export interface UpstreamCheckResult {
  findings: Finding[];
  /** How far its clock is ahead of ours, in milliseconds; absent: it did not tell. */
  aheadMs?: number;
}

/** Looks at one upstream. `models` are the ids that targets name. */
export async function checkUpstream(
  name: string,
  { host, models, look }: { host: Host; models: readonly string[]; look: UpstreamCheckOptions },
): Promise<UpstreamCheckResult> {
  const notes = createNotes(`upstream ${name}`);
  const base = baseUrlOf(host);
  tellClient(notes, { host, base, look });
  if (!await mayReach(notes, new URL(base), look)) return { findings: notes.found };
  // Behind a proxy, the way is the proxy's.
  const direct = proxyFor(base, look.env) === undefined;
  if (direct && !await checkConnection(notes, new URL(base), look)) return { findings: notes.found };
  const client = Deno.createHttpClient({ http2: false, poolMaxIdlePerHost: 0, allowHost: true });
  try {
    const probed = {
      vendor: host.vendor,
      baseUrl: base,
      key: host.api_key,
      protocols: host.protocols,
      guard: look.guard,
    };
    const visit = { notes, host, probed, models, look, client };
    const list = await ask(visit, modelList(host, { key: true }));
    if (list === undefined) return { findings: notes.found };
    await judge(visit, list);
    return { findings: notes.found, ...(list.aheadMs !== undefined && { aheadMs: list.aheadMs }) };
  } finally {
    client.close();
  }
}

/** Where requests would not go, the key does not go either. A name that cannot be found is told later. */
async function mayReach(notes: Notes, { hostname }: URL, { guard }: UpstreamCheckOptions): Promise<boolean> {
  try {
    await allowedAddresses(hostname.replace(/^\[(.*)\]$/, "$1"), { guard });
  } catch (error) {
    if (!(error instanceof BlockedAddress)) return true;
    notes.error(error.message, "Look at base_url and at your name servers; private_networks lists what may be reached");
    return false;
  }
  return true;
}

/** What carries requests there. */
function tellClient(
  notes: Notes,
  { host, base, look }: { host: Host; base: string; look: UpstreamCheckOptions },
): void {
  const client = transportKindFor({ url: base, wanted: host.transport, env: look.env });
  const proxied = proxyFor(base, look.env) !== undefined;
  if (client === "http1" && proxied) {
    return notes.warn(
      `Requests go out over http1, past the proxy that the environment names; these looks go through it`,
      `Say "transport": "auto", unless it is meant so`,
    );
  }
  notes.ok(
    `Requests go out over ${client}${host.transport === "auto" && proxied ? ", as they go through a proxy" : ""}`,
  );
}

interface Visit {
  notes: Notes;
  host: Host;
  probed: ProbedHost;
  models: readonly string[];
  look: UpstreamCheckOptions;
  client: Deno.HttpClient;
}

interface Heard extends ProbeReply {
  aheadMs?: number;
}

/** Sends one request; `undefined` where there was no answer, and the notes say so. */
async function ask({ notes, host, probed, look, client }: Visit, request: ProbeRequest): Promise<Heard | undefined> {
  const begun = look.now();
  try {
    const signal = AbortSignal.timeout(look.timeoutMs);
    const reply = await askHost(probed, request, { client, signal, mostText: LIST_LENGTH });
    const ended = look.now();
    if (ended - begun > SLOW_MS) {
      notes.warn(
        `It took ${((ended - begun) / 1000).toFixed(1)} s to answer a request for nothing`,
        "Look whether it is always so slow: clients wait as long for every first word",
      );
    }
    const told = Date.parse(reply.date ?? "");
    // The header has whole seconds, so that it is half a second old on the average.
    return { ...reply, ...(!Number.isNaN(told) && { aheadMs: told + 500 - (begun + ended) / 2 }) };
  } catch (error) {
    if (host.transport === "auto" && /NoApplicationProtocol/.test(reasonOf(error))) {
      notes.warn(
        "It speaks HTTP/2 alone: requests go out over fetch, from the first refusal on",
        "Have it offer HTTP/1.1, if it is yours: that costs less, and no request is ever sent twice unseen",
      );
      return undefined;
    }
    // Older runtimes find this out no sooner.
    if (/certificate/.test(reasonOf(error))) {
      noteTlsFailure(notes, new URL(probed.baseUrl).host, error);
      return undefined;
    }
    const late = error instanceof DOMException && error.name === "TimeoutError";
    notes.error(
      late ? `No answer within ${look.timeoutMs / 1000} s` : `No answer: ${reasonOf(error)}`,
      late ? "Look whether the address is right and the host is well" : "Look at base_url, and at what is in between",
    );
    return undefined;
  }
}

async function judge(visit: Visit, list: Heard): Promise<void> {
  const { notes, host } = visit;
  if (list.status >= 300 && list.status < 400) return redirected(notes, list);
  if (mayRefuseKey(list)) return refused(visit, list);
  if (list.status === 429 || list.status >= 500) {
    return notes.warn(`It answers ${list.status} at the moment`, "Try again later, and look at its status page");
  }
  if (list.status === 200) {
    const isOpen = host.api_key === undefined || await isPublic(visit);
    if (!isOpen) notes.ok("It takes the key");
    else if (host.api_key === undefined && vendorOf(host.vendor).keyless === true) {
      notes.ok("It wants no key for its list of models");
    } else await tryEmpty(visit);
    return knows(visit, list);
  }
  await tryEmpty(visit, list.status);
}

/** Some hosts show their models to everybody: their list tells nothing about a key. */
async function isPublic(visit: Visit): Promise<boolean> {
  const heard = await ask(visit, modelList(visit.host, { key: false }));
  return heard?.status === 200;
}

/** A request that must fail as bad, and not as unauthorized. */
async function tryEmpty(visit: Visit, listStatus?: number): Promise<void> {
  const { notes } = visit;
  const heard = await ask(visit, emptyRequest(visit.probed));
  if (heard === undefined) return;
  if (heard.status >= 300 && heard.status < 400) return redirected(notes, heard);
  if (mayRefuseKey(heard)) return refused(visit, heard);
  if (heard.status === 404 && listStatus === 404) {
    return notes.error(
      "It answers 404 for its list of models and for its endpoint",
      "Look at base_url: a path such as /v1 may be missing",
    );
  }
  if (heard.status === 429 || heard.status >= 500) {
    return notes.warn(`It answers ${heard.status} at the moment`, "Try again later, and look at its status page");
  }
  if (heard.status < 300) {
    return notes.warn(
      `It answers an empty request with ${heard.status}, as hosts of models do not`,
      "Look at base_url: something else may answer there",
    );
  }
  notes.ok(`It refuses an empty request with ${heard.status}, and not the key`);
}

function refused({ notes, host }: Visit, { status }: Heard): void {
  if (host.api_key === undefined) notes.error(`It wants a key: ${status}`, "Add api_key to the upstream");
  else {
    notes.error(
      `It refuses the key: ${status}`,
      "Put a good key into its variable; every request would be answered with 502",
    );
  }
}

function redirected(notes: Notes, { status, location }: Heard): void {
  const url = location === null ? null : URL.parse(location);
  const to = url === null ? "elsewhere" : `${url.origin}${url.pathname}`;
  notes.error(
    `It redirects (${status}) to ${to}, which is not followed: the key would be carried there`,
    "Write the address that it really has as base_url",
  );
}

/** Compares the ids of targets with those that are listed. */
function knows({ notes, host, models }: Visit, { text }: Heard): void {
  const listed = readIds(text);
  if (listed === undefined) {
    return notes.warn(
      "What it gives as its list of models is none",
      "Look at base_url: something else seems to answer there",
    );
  }
  // Azure lists what can be deployed; targets name deployments.
  if (host.vendor === "azure" || models.length === 0) return;
  const known = new Set(listed);
  const missing = models.filter((model) => !known.has(model) && !known.has(`${model}:latest`));
  if (missing.length === 0) return notes.ok(`It knows every model that targets name (${models.length})`);
  const names = missing.slice(0, NAMED).map((model) => `"${model}"`).join(", ");
  const more = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : "";
  notes.warn(
    `Its list of ${listed.length} models does not have ${names}${more}`,
    "Look for misspelled targets; an alias may work without being listed",
  );
}

function readIds(text: string): string[] | undefined {
  try {
    // Of names, only three are looked at, in a process that reads nobody else's: the runtime's parser will do.
    const body: unknown = JSON.parse(text);
    if (!isObject(body)) return undefined;
    const rows = [body.data, body.models].find(Array.isArray);
    return rows?.filter(isObject).map(({ id, name }: JsonObject) => String(id ?? name).replace(/^models\//, ""));
  } catch {
    return undefined;
  }
}
