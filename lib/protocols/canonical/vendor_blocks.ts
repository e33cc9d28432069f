/** Types of blocks and items that only one protocol has. */

/** Blocks of messages that record tools run by the vendor. The text around them has the outcome. */
export const MESSAGES_RECORDS = [
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "mcp_tool_use",
  "mcp_tool_result",
  "mcp_tool_listing",
  "advisor_tool_result",
  "fallback",
] as const;

/**
 * The kind of message to which an item of responses belongs. Adjacent items of the model form one message, and so do
 * adjacent tool results; every other item is a message of its own.
 */
export type MessageKind = "assistant" | "results" | "user" | "system";

/** Items that only responses has, mostly records of tools run by the vendor, with the kind of their message. */
export const RESPONSES_ITEMS = {
  web_search_call: "assistant",
  file_search_call: "assistant",
  code_interpreter_call: "assistant",
  image_generation_call: "assistant",
  computer_call: "assistant",
  computer_call_output: "results",
  local_shell_call: "assistant",
  local_shell_call_output: "results",
  shell_call: "assistant",
  shell_call_output: "results",
  apply_patch_call: "assistant",
  apply_patch_call_output: "results",
  tool_search_call: "assistant",
  tool_search_output: "results",
  mcp_list_tools: "assistant",
  mcp_call: "assistant",
  mcp_approval_request: "assistant",
  mcp_approval_response: "results",
  program: "assistant",
  program_output: "results",
  compaction: "assistant",
  compaction_trigger: "user",
  configuration_update: "system",
} as const satisfies Record<string, MessageKind>;
