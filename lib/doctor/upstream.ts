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
  { host, models, options }: { host: HttpUpstreamConfig; models: readonly string[]; options: UpstreamCheckOptions },
): Promise<UpstreamCheckResult> {
  const notes = createNotes(`upstream ${name}`);
  const base = baseUrlOf(host);
  reportTransport(notes, { host, base, options });
  if (!await mayReach(notes, new URL(base), options)) return { findings: notes.found };
  // Behind a proxy, the way is the proxy's.
  const direct = proxyFor(base, options.env) === undefined;
  if (direct && !await checkConnection(notes, new URL(base), options)) return { findings: notes.found };
  const client = Deno.createHttpClient({ http2: false, poolMaxIdlePerHost: 0, allowHost: true });
  try {
    const probed = {
      vendor: host.vendor,
      baseUrl: base,
      key: host.api_key,
      protocols: host.protocols,
      guard: options.guard,
    };
    const probe = { notes, host, probed, models, options, client };
    const list = await ask(probe, modelList(host, { key: true }));
    if (list === undefined) return { findings: notes.found };
    await reportModelList(probe, list);
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
function reportTransport(
  notes: Notes,
  { host, base, options }: { host: HttpUpstreamConfig; base: string; options: UpstreamCheckOptions },
): void {
  const client = transportKindFor({ url: base, wanted: host.transport, env: options.env });
  const proxied = proxyFor(base, options.env) !== undefined;
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

interface UpstreamProbe {
  notes: Notes;
  host: HttpUpstreamConfig;
  probed: ProbedHost;
  models: readonly string[];
  options: UpstreamCheckOptions;
  client: Deno.HttpClient;
}

interface TimedReply extends ProbeReply {
  aheadMs?: number;
}

/** Sends one request; `undefined` where there was no answer, and the notes say so. */
async function ask(
  { notes, host, probed, options, client }: UpstreamProbe,
  request: ProbeRequest,
): Promise<TimedReply | undefined> {
  const begun = options.now();
  try {
    const signal = AbortSignal.timeout(options.timeoutMs);
    const reply = await askHost(probed, request, { client, signal, mostText: LIST_LENGTH });
    const ended = options.now();
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
      late ? `No answer within ${options.timeoutMs / 1000} s` : `No answer: ${reasonOf(error)}`,
      late ? "Check the address and the state of the host" : "Check base_url and the network on the way",
    );
    return undefined;
  }
}

async function reportModelList(probe: UpstreamProbe, list: TimedReply): Promise<void> {
  const { notes, host } = probe;
  if (list.status >= 300 && list.status < 400) return reportRedirect(notes, list);
  if (mayRefuseKey(list)) return reportRefusedKey(probe, list);
  if (list.status === 429 || list.status >= 500) {
    return notes.warn(`It answers ${list.status} at the moment`, "Try again later, or see its status page");
  }
  if (list.status === 200) {
    const isOpen = host.api_key === undefined || await isPublic(probe);
    if (!isOpen) notes.ok("It accepts the key");
    else if (host.api_key === undefined && vendorOf(host.vendor).keyless === true) {
      notes.ok("It needs no key for its list of models");
    } else await sendEmptyRequest(probe);
    return reportMissingModels(probe, list);
  }
  await sendEmptyRequest(probe, list.status);
}

/** Some hosts list their models without a key: there the list proves nothing about it. */
async function isPublic(probe: UpstreamProbe): Promise<boolean> {
  const reply = await ask(probe, modelList(probe.host, { key: false }));
  return reply?.status === 200;
}

/** A request that must fail as bad, and not as unauthorized. */
async function sendEmptyRequest(probe: UpstreamProbe, listStatus?: number): Promise<void> {
  const { notes } = probe;
  const reply = await ask(probe, emptyRequest(probe.probed));
  if (reply === undefined) return;
  if (reply.status >= 300 && reply.status < 400) return reportRedirect(notes, reply);
  if (mayRefuseKey(reply)) return reportRefusedKey(probe, reply);
  if (reply.status === 404 && listStatus === 404) {
    const path = usualPath(probe.host.vendor);
    return notes.error(
      "It answers 404 for its list of models and for its endpoint",
      `Check base_url: ${path === "/" ? "its path may be wrong" : `a path such as ${path} may be missing`}`,
    );
  }
  if (reply.status === 429 || reply.status >= 500) {
    return notes.warn(`It answers ${reply.status} at the moment`, "Try again later, or see its status page");
  }
  if (reply.status < 300) {
    return notes.warn(
      `It answers an empty request with ${reply.status}, which model hosts do not`,
      "Check base_url: something else may answer there",
    );
  }
  notes.ok(`It refuses an empty request with ${reply.status}, and not the key`);
}

function reportRefusedKey({ notes, host }: UpstreamProbe, { status }: TimedReply): void {
  if (host.api_key === undefined) notes.error(`It needs a key: ${status}`, "Add api_key to the upstream");
  else {
    notes.error(
      `It refuses the key: ${status}`,
      "Put a valid key into its variable; until then its models have one target less",
    );
  }
}

function reportRedirect(notes: Notes, { status, location }: TimedReply): void {
  const url = location === null ? null : URL.parse(location);
  const to = url === null ? "elsewhere" : `${url.origin}${url.pathname}`;
  notes.error(
    `It redirects (${status}) to ${to}, which is not followed: it would receive the key`,
    "Set base_url to its real address",
  );
}

/** Compares the ids of targets with those that are listed. */
function reportMissingModels({ notes, host, models }: UpstreamProbe, { text }: TimedReply): void {
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
