// Package calibrate measures a kernel into a machine profile.
package calibrate
