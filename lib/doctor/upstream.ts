/** Checks one upstream: that it is reachable, accepts the key, and has the models. No request costs anything. */
import type { HttpUpstreamConfig } from "../config.ts";
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
import { baseUrlOf, usualPath, vendorOf } from "../upstreams/vendors.ts";
import { transportKindFor } from "../upstreams/select_transport.ts";
import { createNotes, type Finding, type Notes, reasonOf } from "./finding.ts";
import { checkConnection, type ConnectionCheckOptions, noteTlsFailure } from "./connection.ts";

/** Largest list of models that is read, in UTF-16 code units. */
const LIST_LENGTH = 8 * 1024 * 1024;
/** Slower answers are reported, in milliseconds. */
const SLOW_MS = 3_000;
/** Most models that a finding names. */
const NAMED = 5;

/** Options of the check. */
export interface UpstreamCheckOptions extends ConnectionCheckOptions {
  env: (name: string) => string | undefined;
  /** Checks the addresses of its host; absent: metadata addresses are refused. */
  guard?: AddressGuard;
}

/** The result of the check of one upstream. */
export interface UpstreamCheckResult {
  findings: Finding[];
  /** The lead of its clock over ours, in milliseconds; absent: it sent no date. */
  aheadMs?: number;
}

/** Checks one upstream. `models` are the ids that targets name. */
export async function checkUpstream(
  name: string,
  { host, models, look }: { host: HttpUpstreamConfig; models: readonly string[]; look: UpstreamCheckOptions },
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

/** The key is sent only to addresses that requests may reach. A name that cannot be resolved is reported later. */
async function mayReach(notes: Notes, { hostname }: URL, { guard }: UpstreamCheckOptions): Promise<boolean> {
  try {
    await allowedAddresses(hostname.replace(/^\[(.*)\]$/, "$1"), { guard });
  } catch (error) {
    if (!(error instanceof BlockedAddress)) return true;
    notes.error(error.message, "Check base_url and your DNS servers; private_networks lists what may be reached");
    return false;
  }
  return true;
}

/** Reports the transport that requests use. */
function tellClient(
  notes: Notes,
  { host, base, look }: { host: HttpUpstreamConfig; base: string; look: UpstreamCheckOptions },
): void {
  const client = transportKindFor({ url: base, wanted: host.transport, env: look.env });
  const proxied = proxyFor(base, look.env) !== undefined;
  if (client === "http1" && proxied) {
    return notes.warn(
      `Requests use http1 and bypass the proxy of the environment; these checks go through it`,
      `Set "transport": "auto", unless this is intended`,
    );
  }
  notes.ok(
    `Requests use ${client}${host.transport === "auto" && proxied ? ", as they go through a proxy" : ""}`,
  );
}

interface Visit {
  notes: Notes;
  host: HttpUpstreamConfig;
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
        `It took ${((ended - begun) / 1000).toFixed(1)} s to answer a trivial request`,
        "Check whether it is always so slow: clients wait as long for the first token",
      );
    }
    const hostTime = Date.parse(reply.date ?? "");
    // The header has whole seconds, so that it is half a second old on the average.
    return { ...reply, ...(!Number.isNaN(hostTime) && { aheadMs: hostTime + 500 - (begun + ended) / 2 }) };
  } catch (error) {
    if (host.transport === "auto" && /NoApplicationProtocol/.test(reasonOf(error))) {
      notes.warn(
        "It speaks only HTTP/2: requests use fetch after the first refusal",
        "Enable HTTP/1.1 there if you can: it costs less, and no request is silently repeated",
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
      late ? "Check the address and the state of the host" : "Check base_url and the network on the way",
    );
    return undefined;
  }
}

async function judge(visit: Visit, list: Heard): Promise<void> {
  const { notes, host } = visit;
  if (list.status >= 300 && list.status < 400) return redirected(notes, list);
  if (mayRefuseKey(list)) return refused(visit, list);
  if (list.status === 429 || list.status >= 500) {
    return notes.warn(`It answers ${list.status} at the moment`, "Try again later, or see its status page");
  }
  if (list.status === 200) {
    const isOpen = host.api_key === undefined || await isPublic(visit);
    if (!isOpen) notes.ok("It accepts the key");
    else if (host.api_key === undefined && vendorOf(host.vendor).keyless === true) {
      notes.ok("It needs no key for its list of models");
    } else await tryEmpty(visit);
    return knows(visit, list);
  }
  await tryEmpty(visit, list.status);
}

/** Some hosts list their models without a key: there the list proves nothing about it. */
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
    const path = usualPath(visit.host.vendor);
    return notes.error(
      "It answers 404 for its list of models and for its endpoint",
      `Check base_url: ${path === "/" ? "its path may be wrong" : `a path such as ${path} may be missing`}`,
    );
  }
  if (heard.status === 429 || heard.status >= 500) {
    return notes.warn(`It answers ${heard.status} at the moment`, "Try again later, or see its status page");
  }
  if (heard.status < 300) {
    return notes.warn(
      `It answers an empty request with ${heard.status}, which model hosts do not`,
      "Check base_url: something else may answer there",
    );
  }
  notes.ok(`It refuses an empty request with ${heard.status}, and not the key`);
}

function refused({ notes, host }: Visit, { status }: Heard): void {
  if (host.api_key === undefined) notes.error(`It needs a key: ${status}`, "Add api_key to the upstream");
  else {
    notes.error(
      `It refuses the key: ${status}`,
      "Put a valid key into its variable; until then requests get 502",
    );
  }
}

function redirected(notes: Notes, { status, location }: Heard): void {
  const url = location === null ? null : URL.parse(location);
  const to = url === null ? "elsewhere" : `${url.origin}${url.pathname}`;
  notes.error(
    `It redirects (${status}) to ${to}, which is not followed: it would receive the key`,
    "Set base_url to its real address",
  );
}

/** Compares the ids of targets with those that are listed. */
function knows({ notes, host, models }: Visit, { text }: Heard): void {
  const listed = readIds(text);
  if (listed === undefined) {
    return notes.warn(
      "Its list of models is not one",
      "Check base_url: something else seems to answer there",
    );
  }
  // Azure lists what can be deployed; targets name deployments.
  if (host.vendor === "azure" || models.length === 0) return;
  const known = new Set(listed);
  const missing = models.filter((model) => !known.has(model) && !known.has(`${model}:latest`));
  if (missing.length === 0) return notes.ok(`It has every model that targets name (${models.length})`);
  const names = missing.slice(0, NAMED).map((model) => `"${model}"`).join(", ");
  const more = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : "";
  notes.warn(
    `Its list of ${listed.length} models does not have ${names}${more}`,
    "Check the spelling of targets; an alias may work without being listed",
  );
}

function readIds(text: string): string[] | undefined {
  try {
    // The runtime's parser is sufficient: this process serves no requests.
    const body: unknown = JSON.parse(text);
    if (!isObject(body)) return undefined;
    const rows = [body.data, body.models].find(Array.isArray);
    return rows?.filter(isObject).map(({ id, name }: JsonObject) => String(id ?? name).replace(/^models\//, ""));
  } catch {
    return undefined;
  }
}
