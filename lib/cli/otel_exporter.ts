/** The address of Deno's OpenTelemetry exporter. */
import { isWithin } from "../access/networks.ts";
import { type Config, ConfigError } from "../config.ts";
import { allowedAddresses, BlockedAddress, metadataGuard } from "../upstreams/address_guard.ts";

/** Deno's own exporter accepts no address guard, so its address is checked once. @throws {ConfigError} */
export async function checkExporter(privateNetworks: Config["private_networks"]): Promise<void> {
  const address = URL.parse(Deno.env.get("OTEL_EXPORTER_OTLP_ENDPOINT") ?? "");
  if (address === null || (Deno.env.get("OTEL_DENO") ?? "") === "") return;
  try {
    await allowedAddresses(address.hostname.replace(/^\[(.*)\]$/, "$1"), {
      guard(hostname, at) {
        if (!isWithin(at, privateNetworks ?? [])) metadataGuard(hostname, at);
      },
    });
  } catch (error) {
    // A collector that is not running yet is no error.
    if (error instanceof BlockedAddress) throw new ConfigError([`OTEL_EXPORTER_OTLP_ENDPOINT: ${error.message}`]);
  }
}
