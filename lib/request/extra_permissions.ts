/** Decides which extras, features that cost more than tokens or use the vendor's stored state, a request may use. */
import type { HostedTool, Prompt } from "../protocols/canonical/types.ts";
import { isObject, type JsonObject } from "../json/mod.ts";
import type { Extra, ExtrasTable } from "../protocols/extras.ts";
import { spellingError } from "./screen_tools.ts";
import { type Caller, mayCall } from "../access/permissions.ts";
import { GatewayError } from "../errors.ts";
import { countOf } from "../protocols/members.ts";
import { withSettings } from "../protocols/plain_contents.ts";

/** The parts of a caller that decide what it may use. */
export type ExtrasCaller = Pick<Caller, "group" | "groupName" | "rules">;

/**
 * Maximum number of members and tools that are removed from one body. Removing 72,000 blocked the event loop for 130
 * ms.
 */
const MAX_REMOVALS = 1_000;

/** Decides which extras of one request are permitted, and records those that are granted and those that are removed. */
export class ExtraPermissions {
  readonly #value: JsonObject;
  readonly #caller: ExtrasCaller;
  readonly #callLimit: ExtrasTable["callLimit"];
  readonly groupName: string;
  /** True if the group may use files and conversations that the vendor keeps. */
  readonly vendorState: boolean;
  /** Names of removed members and tools. */
  readonly dropped: string[] = [];
  #removals = 0;
  readonly #hosted: HostedTool[] = [];
  #remoteMcp = false;
  #tier: string | undefined;
  #tierParameter: string | undefined;

  constructor(
    value: JsonObject,
    { caller, callLimit }: { caller: ExtrasCaller; callLimit: ExtrasTable["callLimit"] },
  ) {
    this.#value = value;
    this.#caller = caller;
    this.#callLimit = callLimit;
    this.groupName = caller.groupName;
    this.vendorState = caller.group.vendor_state === true;
  }

  /**
   * Records a requested feature if it is permitted.
   * @param source the tool or the member of the body that asks for it
   * @returns whether it is permitted
   */
  takes(extra: Extra, { tool, member }: { tool?: JsonObject; member?: string } = {}): boolean {
    if (!this.permits(extra)) return false;
    switch (extra.feature) {
      case "hosted_tool": {
        const maxCalls = this.#callLimit === "max_uses" ? countOf(tool?.max_uses) : undefined;
        this.#hosted.push({ name: extra.tool, ...(maxCalls !== undefined && { maxCalls }) });
        return true;
      }
      case "service_tier":
        // There is no price for a request with two service tiers.
        if (this.#tier !== undefined && this.#tier !== extra.tier) return false;
        this.#tier = extra.tier;
        this.#tierParameter = member;
        return true;
      case "remote_mcp":
        this.#remoteMcp = true;
        return true;
      default:
        return true;
    }
  }

  /** Returns whether the caller may use the feature. */
  permits(extra: Extra): boolean {
    const { group } = this.#caller;
    switch (extra.feature) {
      case "hosted_tool":
        return group.hosted_tools?.includes(extra.tool) === true &&
          (extra.tool !== IMAGE_TOOL || mayCall(this.#caller, "images"));
      case "service_tier":
        return group.service_tiers?.includes(extra.tier) === true;
      case "remote_mcp":
        return group.remote_mcp === true;
      case "vendor_state":
        return this.vendorState;
      case "unpriced":
      case "server":
      case "long_context":
        return false;
    }
  }

  /** Records that a feature is removed. @throws {GatewayError} `invalid` if the client requires all, or for too many */
  drop(extra: Extra, name: string): void {
    this.#remove(name, () => this.refusal(extra, name));
  }

  /** Records that a member with an unusual spelling is removed. @throws {GatewayError} as `drop` */
  dropSpelling(name: string, usual: string): void {
    this.#remove(name, () => spellingError(name, usual));
  }

  #remove(name: string, refusal: () => GatewayError): void {
    const { provider } = this.#value;
    if (isObject(provider) && provider.require_parameters === true) throw refusal();
    if (++this.#removals > MAX_REMOVALS) {
      throw new GatewayError(
        "invalid",
        `Cannot use ${name}: more than ${MAX_REMOVALS} members and tools like it would have to be removed`,
        { param: name },
      );
    }
    if (!this.dropped.includes(name)) this.dropped.push(name);
  }

  /** Returns the error for a feature that is not permitted and cannot be removed. */
  refusal(extra: Extra, member: string, code?: string): GatewayError {
    const { groupName } = this;
    const { group } = this.#caller;
    const { what, setting } = wordsOf(extra);
    const lacksImages = extra.feature === "hosted_tool" && group.hosted_tools?.includes(extra.tool) === true;
    const allow = setting === undefined
      ? ""
      : `. The operator can allow it in groups.${groupName}.${lacksImages ? "endpoints (images)" : setting}`;
    return new GatewayError("invalid", `Cannot use ${member}: group "${groupName}" may not use ${what}${allow}`, {
      param: member,
      ...(code !== undefined && { code }),
    });
  }

  /** Returns the prompt with the granted features. */
  withGranted(prompt: Prompt): Prompt {
    const vendorState = this.vendorState ? { vendorState: true } : undefined;
    if (this.#hosted.length === 0 && !this.#remoteMcp && this.#tier === undefined) {
      return vendorState === undefined ? prompt : withSettings(prompt, vendorState);
    }
    // The vendor honours the call limit only in its own protocol.
    const maxCalls = this.#callLimit === "max_tool_calls" ? countOf(this.#value.max_tool_calls) : undefined;
    const extras = {
      hostedTools: this.#hosted,
      remoteMcp: this.#remoteMcp,
      ...(maxCalls !== undefined && { maxCalls }),
      ...(this.#tier !== undefined && { tier: this.#tier }),
      ...(this.#tierParameter !== undefined && { tierParameter: this.#tierParameter }),
    };
    return withSettings(prompt, { ...vendorState, extras });
  }
}

/** The hosted tool that makes images. A group also needs permission for the image endpoints to use it. */
const IMAGE_TOOL = "image_generation";

function wordsOf(extra: Extra): { what: string; setting?: string } {
  switch (extra.feature) {
    case "hosted_tool":
      return { what: `the hosted tool "${extra.tool}"`, setting: "hosted_tools" };
    case "service_tier":
      return { what: `the service tier "${extra.tier}"`, setting: "service_tiers" };
    case "remote_mcp":
      return { what: "remote MCP servers", setting: "remote_mcp" };
    case "vendor_state":
      return { what: "state that the vendor keeps", setting: "vendor_state" };
    case "unpriced":
    case "long_context":
      return { what: "it, as its cost would be unknown" };
    case "server":
      return { what: "settings of the server" };
  }
}
