/**
 * Checks an upstream: that it is reachable, accepts the key, and has the models of targets. The checks are free of
 * charge.
 */
import { reasonOf } from "../causes.ts";
import type { HttpUpstreamConfig } from "../config.ts";
import { isObject, type JsonObject } from "../json/mod.ts";
import { type AddressGuard, allowedAddresses, BlockedAddress } from "../upstreams/address_guard.ts";
import type { ReadEnvironment } from "../secret.ts";
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
import { bareHostname } from "../host_address.ts";
import { createNotes, type Finding, type Notes } from "./finding.ts";
import { checkConnection, type ConnectionCheckOptions, noteTlsFailure } from "./connection.ts";

/** Largest model list that is read, in UTF-16 code units. */
const MAX_LIST_UNITS = 8 * 1024 * 1024;
/** Longest duration of an answer that is not reported, in milliseconds. */
const MAX_ANSWER_MS = 3_000;
/** Largest number of models that a finding names. */
const MAX_NAMED_MODELS = 5;

/** Options of the check. */
export interface UpstreamCheckOptions extends ConnectionCheckOptions {
  env: ReadEnvironment;
  /** Decides which addresses may be connected to; absent: all except metadata addresses. */
  guard?: AddressGuard;
}

/** The result of the check of one upstream. */
export interface UpstreamCheckResult {
  findings: Finding[];
  /** By how much its clock is ahead of this machine's, in milliseconds; absent: it sent no date. */
  aheadMs?: number;
}

/** Checks an upstream. @param parts `models`: its model ids that targets name */
export async function checkUpstream(
  name: string,
  { host, models, options }: { host: HttpUpstreamConfig; models: readonly string[]; options: UpstreamCheckOptions },
): Promise<UpstreamCheckResult> {
  const notes = createNotes(`upstream ${name}`);
  const base = baseUrlOf(host);
  reportTransport(notes, { host, base, options });
  if (!await mayReach(notes, new URL(base), options)) return { findings: notes.found };
  // Through a proxy, this machine does not connect to the host itself.
  const isDirect = proxyFor(base, options.env) === undefined;
  if (isDirect && !await checkConnection(notes, new URL(base), options)) return { findings: notes.found };
  const client = Deno.createHttpClient({ http2: false, poolMaxIdlePerHost: 0, allowHost: true });
  try {
    const { vendor, api_key: key, protocols } = host;
    const probed = { vendor, baseUrl: base, key, protocols, guard: options.guard };
    const probe = { notes, host, probed, models, options, client };
    const list = await sendProbe(probe, modelList(host, { key: true }));
    if (list === undefined) return { findings: notes.found };
    await reportModelList(probe, list);
    return { findings: notes.found, ...(list.aheadMs !== undefined && { aheadMs: list.aheadMs }) };
  } finally {
    client.close();
  }
}

/**
 * Returns whether requests may be sent to the addresses of a host, so that the key is sent nowhere else. A name that
 * cannot be resolved is reported by a later check.
 */
async function mayReach(notes: Notes, { hostname }: URL, { guard }: UpstreamCheckOptions): Promise<boolean> {
  try {
    await allowedAddresses(bareHostname(hostname), { guard });
  } catch (error) {
    if (!(error instanceof BlockedAddress)) return true;
    notes.error(error.message, "Check base_url and your DNS servers; private_networks lists what may be reached");
    return false;
  }
  return true;
}

function reportTransport(
  notes: Notes,
  { host, base, options }: { host: HttpUpstreamConfig; base: string; options: UpstreamCheckOptions },
): void {
  const transport = transportKindFor({ url: base, configured: host.transport, env: options.env });
  const hasProxy = proxyFor(base, options.env) !== undefined;
  if (transport === "http1" && hasProxy) {
    return notes.warn(
      `Requests use http1 and bypass the proxy of the environment; these checks go through it`,
      `Set "transport": "auto", unless this is intended`,
    );
  }
  notes.ok(`Requests use ${transport}${host.transport === "auto" && hasProxy ? ", as they go through a proxy" : ""}`);
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
  /** By how much the host's clock is ahead, in milliseconds; absent: it sent no date. */
  aheadMs?: number;
}

/** Sends a request. Returns `undefined` if there is no answer, which it notes. */
async function sendProbe(
  { notes, host, probed, options, client }: UpstreamProbe,
  request: ProbeRequest,
): Promise<TimedReply | undefined> {
  const startedAt = options.now();
  try {
    const signal = AbortSignal.timeout(options.timeoutMs);
    const reply = await askHost(probed, request, { client, signal, maxText: MAX_LIST_UNITS });
    const endedAt = options.now();
    if (endedAt - startedAt > MAX_ANSWER_MS) {
      notes.warn(
        `It took ${((endedAt - startedAt) / 1000).toFixed(1)} s to answer a trivial request`,
        "Check whether it is always so slow: clients wait as long for the first token",
      );
    }
    const hostTime = Date.parse(reply.date ?? "");
    // The header is rounded down to seconds, so it is half a second behind on average.
    return { ...reply, ...(!Number.isNaN(hostTime) && { aheadMs: hostTime + 500 - (startedAt + endedAt) / 2 }) };
  } catch (error) {
    if (host.transport === "auto" && /NoApplicationProtocol/.test(reasonOf(error))) {
      notes.warn(
        "It speaks only HTTP/2: requests use fetch after the first refusal",
        "Enable HTTP/1.1 there if you can: it costs less, and no request is silently repeated",
      );
      return undefined;
    }
    // Older runtimes do not report a bad certificate before the request.
    if (/certificate/.test(reasonOf(error))) {
      noteTlsFailure(notes, new URL(probed.baseUrl).host, error);
      return undefined;
    }
    const isTimeout = error instanceof DOMException && error.name === "TimeoutError";
    const isProxied = proxyFor(probed.baseUrl, options.env) !== undefined;
    notes.error(
      isTimeout ? `No answer within ${options.timeoutMs / 1000} s` : `No answer: ${reasonOf(error)}`,
      `Check base_url, ${isProxied ? "the proxy" : "the network on the way"} and the state of the host`,
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

/** Returns whether a host lists its models without a key. Such a list does not prove that the key is valid. */
async function isPublic(probe: UpstreamProbe): Promise<boolean> {
  const reply = await sendProbe(probe, modelList(probe.host, { key: false }));
  return reply?.status === 200;
}

/** Tests the key with an empty request, which a host must refuse as invalid and not as unauthorized. */
async function sendEmptyRequest(probe: UpstreamProbe, listStatus?: number): Promise<void> {
  const { notes } = probe;
  const reply = await sendProbe(probe, emptyRequest(probe.probed));
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
      `It answers an empty request with ${reply.status}, unlike model hosts`,
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
      "Put a valid key into its variable and restart the gateway; until then its models have one target less",
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

/** Reports models of targets that the host does not list. */
function reportMissingModels({ notes, host, models }: UpstreamProbe, { text }: TimedReply): void {
  const listed = readIds(text);
  if (listed === undefined) {
    return notes.warn("Its list of models has an unknown format", "Check base_url: something else may answer there");
  }
  // Azure lists the models that can be deployed, but targets name deployments.
  if (host.vendor === "azure" || models.length === 0) return;
  const known = new Set(listed);
  const missing = models.filter((model) => !known.has(model) && !known.has(`${model}:latest`));
  if (missing.length === 0) return notes.ok(`It has every model that targets name (${models.length})`);
  const names = missing.slice(0, MAX_NAMED_MODELS).map((model) => `"${model}"`).join(", ");
  const more = missing.length > MAX_NAMED_MODELS ? ` and ${missing.length - MAX_NAMED_MODELS} more` : "";
  notes.warn(
    `Its list of ${listed.length} models does not have ${names}${more}`,
    "Check the spelling of targets; an alias may work without being listed",
  );
}

function readIds(text: string): string[] | undefined {
  try {
    // The runtime's parser is sufficient: the ids are only compared and shown.
    const body: unknown = JSON.parse(text);
    if (!isObject(body)) return undefined;
    const rows = [body.data, body.models].find(Array.isArray);
    return rows?.filter(isObject).map(({ id, name }: JsonObject) => String(id ?? name).replace(/^models\//, ""));
  } catch {
    return undefined;
  }
}
