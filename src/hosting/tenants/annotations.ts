/**
 * What a tenant namespace says about the pods in it. Written by lending from the SharingPolicy, or by people (`tributary
 * tenant`); read by admission, which runs in the API server, and by the guardian, also when the policy is gone.
 */

/** The runtime class of every pod. */
export const ANNOTATION_RUNTIME_CLASS = 'tributary.dev/runtime-class';
/** Labels of the nodes on which pods may run: `key=value`, joined by commas. */
export const ANNOTATION_NODE_SELECTOR = 'tributary.dev/node-selector';
/** Tolerations that every pod is given: JSON, a list as in a pod. */
export const ANNOTATION_TOLERATIONS = 'tributary.dev/tolerations';
/** StorageClasses that claims may name, joined by commas; none without it. */
export const ANNOTATION_STORAGE_CLASSES = 'tributary.dev/storage-classes';
/** How long pods outlive a home that does not come back, seconds. */
export const ANNOTATION_KEEP_FOR = 'tributary.dev/keep-for';
