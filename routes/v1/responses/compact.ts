export { compactConversation as POST } from "../../../lib/responses/compact_conversation.ts";
