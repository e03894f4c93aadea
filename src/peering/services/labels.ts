/** On home Services and EndpointSlices that stand for a provider's Service: `true`. None without it is ever written. */
export const LABEL_OFFERED_SERVICE = 'tributary.dev/offered-service';
/** On them: `namespace/name` over there. */
export const ANNOTATION_OFFERED_SERVICE = 'tributary.dev/offered-service';
